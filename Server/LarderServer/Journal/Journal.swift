import LarderBackend
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// The journal of a world: a ring of the latest exchanges and frames, up to its capacity. Safe from any thread.
///
/// Its entries share the storage of requests and of cached replies. Bounded by entries, and by a KiB of heads and bodies for each.
final class Journal: Sendable {
    private struct State {
        /// Entries by number modulo capacity; nil once dropped.
        var entries: [JournalEntry?] = []
        var oldest = 1
        var count = 0
        /// The bytes of the stored heads and bodies.
        var bytes = 0
        /// How many times the journal was cleared.
        var clearCount = 0
        var lastActivity = MonotonicTime(nanoseconds: 0)
    }

    private let state = Mutex(State())
    /// Told every new entry, on the thread that writes it.
    let observers = Observers<JournalEntry>()
    /// The maximum number of entries. 0 disables the journal.
    let capacity: Int
    private let bytesMaximum: Int

    /// Longer bodies are counted and not stored.
    static let keptBodyBytesMaximum = 8 << 10

    init(capacity: Int) {
        self.capacity = capacity
        // Enough for `capacity` typical entries; larger ones evict older ones sooner.
        bytesMaximum = max(128 << 10, capacity << 10)
    }

    var isEnabled: Bool { capacity > 0 }

    // MARK: Writing

    /// Adds an exchange and calls the observers, which may read the journal but must not block.
    ///
    /// - Parameters:
    ///   - arrived: the start of the exchange on the world's clock.
    ///   - uptime: its end on that clock.
    ///   - contractFindings: what the contract says about the exchange.
    func append(
        _ record: ExchangeRecord,
        of owner: WorldExchange,
        _ trace: ExchangeTrace?,
        at: WallTime,
        arrived: MonotonicTime,
        uptime: MonotonicTime,
        connection: Int,
        contractFindings: [String]
    ) {
        var request = record.request.droppingPathPrefix(owner.prefixLength)
        let bodyCount = request.body.count
        if bodyCount > Self.keptBodyBytesMaximum { request.body = [] }
        append(
            JournalEntry(
                kind: .exchange,
                at: at,
                request: request,
                connection: connection,
                status: record.status == .noReply ? 0 : record.status.code,
                head: record.head,
                bodyBytes: record.bodyBytes,
                bytesSent: record.bytesSent,
                bytesSavedByCoding: record.bytesSavedByCoding,
                requestBodyBytes: bodyCount,
                started: record.started,
                ended: record.ended,
                startedInWorld: arrived,
                endedInWorld: uptime,
                isComplete: record.isComplete,
                peer: request.peer.host,
                user: owner.viewer,
                commit: owner.commit,
                trace: trace,
                contractFindings: contractFindings
            )
        )
    }

    /// Adds a frame of a live channel.
    ///
    /// - Parameter opening: the request that opened the channel.
    func append(
        _ frame: JournalEntry.Frame,
        bytes: Int,
        opening: Request,
        connection: Int,
        user: Int64,
        at: WallTime,
        uptime: MonotonicTime
    ) {
        append(
            JournalEntry(
                kind: .frame(frame),
                at: at,
                request: opening,
                connection: connection,
                bytesSent: bytes,
                started: uptime,
                ended: uptime,
                startedInWorld: uptime,
                endedInWorld: uptime,
                user: user
            )
        )
    }

    private func append(_ entry: JournalEntry) {
        guard isEnabled else { return }
        observers.tell(state.withLock { add(entry, &$0) })
    }

    private func add(_ entry: JournalEntry, _ state: inout State) -> JournalEntry {
        state.count += 1
        state.lastActivity = entry.endedInWorld
        state.bytes += entry.byteCount
        while state.oldest < state.count, state.bytes > bytesMaximum || state.count - state.oldest >= capacity {
            dropOldest(&state)
        }
        var entry = entry
        entry.number = state.count
        let place = (state.count - 1) % capacity
        if place < state.entries.count { state.entries[place] = entry } else { state.entries.append(entry) }
        return entry
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
    func entries(after number: Int) -> [JournalEntry] { state.withLock { entries(after: number, $0) } }

    /// The entry with that number; nil if it is not stored, or not any more.
    func entry(_ number: Int) -> JournalEntry? {
        state.withLock { state in
            guard number >= state.oldest, number <= state.count else { return nil }
            return state.entries[(number - 1) % capacity]
        }
    }

    /// The read position of a reader.
    struct Position {
        fileprivate var number = 0
        fileprivate var clearCount = 0
    }

    /// The entries after a position, oldest first; advances the position. Entries that were read before cost nothing.
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

    /// The number of stored entries, and the bytes of their heads and bodies.
    var size: (entries: Int, bytes: Int) { state.withLock { ($0.count - $0.oldest + 1, $0.bytes) } }

    /// The number of entries ever written.
    var countEver: Int { state.withLock { $0.count } }

    /// When the last entry was written, on the world's monotonic clock.
    var lastActivity: MonotonicTime { state.withLock { $0.lastActivity } }

    /// Removes all entries; numbers continue.
    func clear() {
        state.withLock { state in
            while state.oldest <= state.count { dropOldest(&state) }
            state.clearCount += 1
        }
    }
}
