import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// The journal of a world: a ring of the latest exchanges and frames, up to its capacity. Safe from any thread.
///
/// Its entries share the storage of requests and of cached replies. Bounded by entries, and by a KiB of heads and bodies for each. They
/// are judged when they are read, each once.
final class Journal: Sendable {
    private struct State {
        /// Entries by number modulo capacity; nil once dropped.
        var entries: [JournalEntry?] = []
        var oldest = 1
        var count = 0
        /// How many of all entries were exchanges.
        var exchangeCount = 0
        /// The bytes of the stored heads and bodies.
        var bytes = 0
        /// How many times the journal was cleared.
        var clearCount = 0
        /// The number of the last entry before the present beginning of the journal.
        var clearedCount = 0
        var lastActivity = MonotonicTime(nanoseconds: 0)
        var judge: ExchangeJudge
        /// The number of the last entry that was judged.
        var judgedCount = 0
    }

    private let state: Mutex<State>
    /// Told every new entry, on the thread that writes it.
    let observers = Observers<JournalEntry>()
    /// The maximum number of entries. 0 disables the journal.
    let capacity: Int
    private let bytesMaximum: Int

    init(capacity: Int) {
        self.capacity = capacity
        state = Mutex(State(judge: ExchangeJudge(capacity: capacity)))
        // Enough for `capacity` typical entries; larger ones evict older ones sooner.
        bytesMaximum = max(128 << 10, capacity << 10)
    }

    var isEnabled: Bool { capacity > 0 }

    /// What is said where the journal is needed and disabled.
    static let isOff = "nothing, because the journal is off (--no-journal)"

    // MARK: Writing

    /// Adds an entry, whose number the journal assigns, and calls the observers, which may read the journal but must not block.
    func append(_ entry: JournalEntry) {
        guard isEnabled else { return }
        let number = state.withLock { state in
            state.count += 1
            if entry.isExchange { state.exchangeCount += 1 }
            state.lastActivity = entry.endedInWorld
            state.bytes += entry.byteCount
            while state.oldest < state.count, state.bytes > bytesMaximum || state.count - state.oldest >= capacity {
                dropOldest(&state)
            }
            let place = (state.count - 1) % capacity
            if place == state.entries.count { state.entries.append(nil) }
            state.entries[place] = entry
            state.entries[place]?.number = state.count
            return state.count
        }
        observers.tell {
            var entry = entry
            entry.number = number
            return entry
        }
    }

    private func dropOldest(_ state: inout State) {
        let place = (state.oldest - 1) % capacity
        state.bytes -= state.entries[place]?.byteCount ?? 0
        state.entries[place] = nil
        state.oldest += 1
    }

    // MARK: Reading

    /// The stored entries, oldest first.
    var entries: [JournalEntry] { entries(after: 0) }

    /// The stored entries with greater numbers, oldest first.
    func entries(after number: Int) -> [JournalEntry] {
        state.withLock { state in
            judge(&state)
            return entries(after: number, state)
        }
    }

    /// The entry with that number; nil if it is not stored, or not any more.
    func entry(_ number: Int) -> JournalEntry? {
        state.withLock { state in
            judge(&state)
            guard number >= state.oldest, number <= state.count else { return nil }
            return state.entries[(number - 1) % capacity]
        }
    }

    /// The read position of a reader.
    struct Position {
        fileprivate var number = 0
        fileprivate var clearCount = 0
    }

    /// The entries after a position, oldest first, without the verdicts on them; advances the position. Entries that were read before cost
    /// nothing.
    ///
    /// - Returns: also whether the journal was cleared since.
    func entries(after position: inout Position) -> (entries: [JournalEntry], wasCleared: Bool) {
        state.withLock { state in
            let last = position
            position = Position(number: state.count, clearCount: state.clearCount)
            return (entries(after: last.number, state), state.clearCount != last.clearCount)
        }
    }

    private func entries(after number: Int, _ state: State) -> [JournalEntry] {
        guard number < state.count else { return [] }
        return (max(state.oldest, number + 1)..<(state.count + 1)).compactMap { state.entries[($0 - 1) % capacity] }
    }

    /// Judges the entries that were not yet. Those that were dropped before are not known.
    ///
    /// - Complexity: O(entries written since the last call).
    private func judge(_ state: inout State) {
        while state.judgedCount < state.count {
            state.judgedCount += 1
            let number = state.judgedCount
            guard number >= state.oldest, let entry = state.entries[(number - 1) % capacity] else { continue }
            let judgement = state.judge.judge(entry)
            state.entries[(number - 1) % capacity]?.retryGap = judgement.retryGap
            for other in judgement.withdrawn where other >= state.oldest {
                state.entries[(other - 1) % capacity]?.verdicts.removeAll { $0.rule == .keyChanged }
            }
            // The later one of two that overlap can end first.
            for (other, verdict) in judgement.verdicts where other >= state.oldest {
                state.entries[(other - 1) % capacity]?.verdicts.append(verdict)
            }
        }
    }

    /// The number of stored entries, and the bytes of their heads and bodies.
    var size: (entries: Int, bytes: Int) { state.withLock { ($0.count - $0.oldest + 1, $0.bytes) } }

    /// The entries that did not fit since the journal was cleared last; nil without any.
    var dropped: ClosedRange<Int>? {
        state.withLock { $0.oldest > $0.clearedCount + 1 ? $0.clearedCount + 1...$0.oldest - 1 : nil }
    }

    /// The number of entries ever written.
    var countEver: Int { state.withLock { $0.count } }

    /// The number of exchanges ever written.
    var exchangeCountEver: Int { state.withLock { $0.exchangeCount } }

    /// When the last entry was written, on the world's monotonic clock.
    var lastActivity: MonotonicTime { state.withLock { $0.lastActivity } }

    /// Removes all entries; numbers continue.
    func clear() {
        state.withLock { state in
            while state.oldest <= state.count { dropOldest(&state) }
            state.judge = ExchangeJudge(capacity: capacity)
            state.clearCount += 1
            state.clearedCount = state.count
        }
    }
}
