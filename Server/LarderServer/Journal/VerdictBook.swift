import Synchronization

/// The judgements on the entries of a journal. Safe from any thread.
///
/// Entries are judged when something is asked for, each once, and the judgements of entries that the journal has dropped are dropped.
final class VerdictBook: Sendable {
    private struct State {
        var judge: ExchangeJudge
        var position = Journal.Position()
        /// By the number of the entry that was judged.
        var judgements: [Int: ExchangeJudge.Judgement] = [:]
        var verdicts: [Int: [ExchangeVerdict]] = [:]
    }

    private let state: Mutex<State>

    /// - Parameter capacity: that of the journal.
    init(capacity: Int) { state = Mutex(State(judge: ExchangeJudge(capacity: capacity))) }

    /// The verdicts on the stored entries, by number.
    ///
    /// - Complexity: O(entries written since the last call).
    func verdicts(of journal: Journal) -> [Int: [ExchangeVerdict]] {
        state.withLock { state in
            Self.judge(journal, &state)
            return state.verdicts
        }
    }

    /// The conduct report on the stored entries. None is judged again.
    func conduct(in journal: Journal) -> ConductReport {
        let judgements = state.withLock { state in
            Self.judge(journal, &state)
            return state.judgements
        }
        // Later entries are left out: they are not judged yet.
        let entries = journal.entries.filter { !$0.isExchange || judgements[$0.number] != nil }
        return ConductInspector.inspect(entries, judgements)
    }

    private static func judge(_ journal: Journal, _ state: inout State) {
        let (news, wasCleared) = journal.entries(after: &state.position)
        if wasCleared {
            state.judge = ExchangeJudge(capacity: journal.capacity)
            state.judgements = [:]
            state.verdicts = [:]
        }
        for entry in news where entry.isExchange {
            let judgement = state.judge.judge(entry)
            state.judgements[entry.number] = judgement
            for (number, verdict) in judgement.verdicts { state.verdicts[number, default: []].append(verdict) }
        }
        if state.judgements.count > 2 * journal.capacity, let last = news.last?.number {
            state.judgements = state.judgements.filter { $0.key > last - journal.capacity }
            state.verdicts = state.verdicts.filter { $0.key > last - journal.capacity }
        }
    }
}
