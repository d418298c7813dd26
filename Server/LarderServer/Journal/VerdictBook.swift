import Synchronization

/// The verdicts on the entries of a journal. Safe from any thread.
///
/// Entries are judged when verdicts are asked for, each once, and the verdicts of entries that the journal has dropped are dropped.
final class VerdictBook: Sendable {
    private struct State {
        var judge: ExchangeJudge
        var position = Journal.Position()
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
            let (news, wasCleared) = journal.entries(after: &state.position)
            if wasCleared {
                state.judge = ExchangeJudge(capacity: journal.capacity)
                state.verdicts = [:]
            }
            for entry in news {
                for (number, verdict) in state.judge.judge(entry).verdicts {
                    state.verdicts[number, default: []].append(verdict)
                }
            }
            if state.verdicts.count > 2 * journal.capacity, let last = news.last?.number {
                state.verdicts = state.verdicts.filter { $0.key > last - journal.capacity }
            }
            return state.verdicts
        }
    }
}
