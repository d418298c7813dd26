import LarderBackend
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// The journal of a world: the latest exchanges and frames, up to its capacity. Safe from any thread.
///
/// Entries are stored as bytes in a ring and decoded on request: writing one costs a lock and a copy of two heads, and
/// allocates nothing once the ring is full.
final class Journal: Sendable {
    private struct State {
        /// Slots by number modulo capacity.
        var slots: [JournalSlot] = []
        /// The replies' heads, by number modulo capacity: most share storage with cached replies.
        var replies: [[UInt8]] = []
        var arena: [UInt8] = []
        /// The offset for the next bytes.
        var position = 0
        var oldest = 1
        var count = 0
        /// How many times the journal was cleared.
        var clearCount = 0
        /// Data that few entries have, by number.
        var traces: [Int: ExchangeTrace] = [:]
        var frames: [Int: JournalEntry.Frame] = [:]
        var observers: [UInt64: @Sendable (JournalEntry) -> Void] = [:]
        var lastObserver: UInt64 = 0
        var lastActivity = MonotonicTime(nanoseconds: 0)
    }

    private let state = Mutex(State())
    private let observerCount = Atomic<Int>(0)
    /// The maximum number of entries. 0 disables the journal.
    let capacity: Int
    private let arenaMaximum: Int

    /// Longer bodies are counted and not stored.
    static let keptBodyBytesMaximum = 8 << 10

    init(capacity: Int) {
        self.capacity = capacity
        // Enough for `capacity` typical entries; larger ones evict older ones sooner.
        arenaMaximum = max(128 << 10, capacity << 10)
    }

    var isEnabled: Bool { capacity > 0 }

    // MARK: Writing

    /// Adds an exchange and calls the observers, which may read the journal but must not block.
    ///
    /// - Parameters:
    ///   - arrived: the start of the exchange on the world's clock.
    ///   - uptime: its end on that clock.
    ///   - prefix: the length in bytes of the world's prefix in the path.
    func append(
        _ record: ExchangeRecord,
        user: Int64,
        at: WallTime,
        arrived: MonotonicTime,
        uptime: MonotonicTime,
        connection: Int,
        prefix: Int
    ) {
        let request = record.request
        let keepsBody = request.body.count <= Self.keptBodyBytesMaximum
        var slot = JournalSlot(
            at: at,
            started: record.started,
            ended: record.ended,
            startedInWorld: arrived,
            endedInWorld: uptime
        )
        slot.headCount = Int32(request.head.count)
        slot.bodyCount = keepsBody ? Int32(request.body.count) : 0
        slot.droppedPrefixCount = Int32(prefix)
        slot.exchangeIndex = Int32(truncatingIfNeeded: request.exchangeIndex)
        slot.connection = Int32(truncatingIfNeeded: connection)
        slot.status = record.status == .noReply ? 0 : Int32(record.status.code)
        slot.isComplete = record.isComplete
        slot.peer = request.peer.host
        slot.user = user
        slot.commit = record.note.effect
        slot.requestBodyBytes = request.body.count
        slot.bodyBytes = record.bodyBytes
        slot.bytesSent = record.bytesSent
        slot.bytesSavedByCoding = record.note.bytesSavedByCoding
        let trace = record.note.detail.flatMap { $0 as? ExchangeTrace }
        write(slot, record.head, uptime) { state, number in
            Self.put(request.head, &state)
            if keepsBody, !request.body.isEmpty { Self.put(request.body, &state) }
            if let trace { state.traces[number] = trace }
        }
    }

    /// The receiver of a frame.
    struct FrameReader {
        let openingHead: [UInt8]
        let droppedPrefixCount: Int32
        let exchangeIndex: Int32
        let connection: Int32
        let user: Int64

        /// - Parameter opening: the request that opened the channel.
        init(opening: Request, connection: Int, user: Int64) {
            openingHead = opening.head
            droppedPrefixCount = Int32(opening.droppedPrefixCount)
            exchangeIndex = Int32(truncatingIfNeeded: opening.exchangeIndex)
            self.connection = Int32(truncatingIfNeeded: connection)
            self.user = user
        }
    }

    /// Adds a frame of a live channel, with one entry for each receiver.
    func append(
        _ frame: JournalEntry.Frame,
        bytes: Int,
        to readers: [FrameReader],
        at: WallTime,
        uptime: MonotonicTime
    ) {
        // Observers must see each entry before the next one can evict it.
        if readers.count > 1, observerCount.load(ordering: .relaxed) > 0 {
            for reader in readers { append(frame, bytes: bytes, to: [reader], at: at, uptime: uptime) }
            return
        }
        let last = state.withLock { state in
            for reader in readers {
                var slot = JournalSlot(
                    at: at,
                    started: uptime,
                    ended: uptime,
                    startedInWorld: uptime,
                    endedInWorld: uptime
                )
                slot.headCount = Int32(reader.openingHead.count)
                slot.droppedPrefixCount = reader.droppedPrefixCount
                slot.exchangeIndex = reader.exchangeIndex
                slot.connection = reader.connection
                slot.user = reader.user
                slot.bytesSent = bytes
                guard add(slot, [], uptime, &state) else { continue }
                Self.put(reader.openingHead, &state)
                state.frames[state.count] = frame
            }
            return state.count
        }
        if readers.count == 1 { tellObservers(last) }
    }

    private func write(
        _ slot: JournalSlot,
        _ reply: [UInt8],
        _ uptime: MonotonicTime,
        _ fill: (inout State, Int) -> Void
    ) {
        let number = state.withLock { state -> Int? in
            guard add(slot, reply, uptime, &state) else { return nil }
            fill(&state, state.count)
            return state.count
        }
        if let number { tellObservers(number) }
    }

    /// Assigns a number and a place in the arena, whose bytes must then be written; false if the entry does not fit.
    private func add(_ slot: JournalSlot, _ reply: [UInt8], _ uptime: MonotonicTime, _ state: inout State) -> Bool {
        guard capacity > 0, slot.byteCount <= arenaMaximum else { return false }
        state.count += 1
        state.lastActivity = uptime
        var slot = slot
        slot.number = state.count
        slot.start = makeRoom(slot.byteCount, &state)
        if state.count - state.oldest >= capacity { Self.dropOldest(&state) }
        let index = (state.count - 1) % capacity
        if index < state.slots.count {
            state.slots[index] = slot
            state.replies[index] = reply
        } else {
            state.slots.append(slot)
            state.replies.append(reply)
        }
        return true
    }

    private func tellObservers(_ number: Int) {
        guard observerCount.load(ordering: .relaxed) > 0 else { return }
        let (written, observers) = state.withLock {
            state -> (StoredJournalEntry?, [@Sendable (JournalEntry) -> Void]) in
            (copy(number, state), state.observers.sorted { $0.key < $1.key }.map { $0.value })
        }
        guard let entry = written?.decoded else { return }
        for observer in observers { observer(entry) }
    }

    /// Finds a place in the arena, evicting the oldest entries.
    private func makeRoom(_ count: Int, _ state: inout State) -> Int {
        if state.position == state.arena.count, state.arena.count + count <= arenaMaximum {
            // The arena only grows as needed: a small one stays in the processor's caches.
            let isFrontFree =
                state.count > capacity && state.oldest < state.count && slot(state.oldest, state).start > count
            if !isFrontFree { return state.position }
        }
        if state.position + count > state.arena.count {
            // The bytes from here to the end belong to the oldest entries and are skipped.
            while state.oldest < state.count, slot(state.oldest, state).start >= state.position {
                Self.dropOldest(&state)
            }
            state.position = 0
        }
        let end = state.position + count
        while state.oldest < state.count {
            let oldest = slot(state.oldest, state)
            guard oldest.start < end, oldest.start + max(1, oldest.byteCount) > state.position else { break }
            Self.dropOldest(&state)
        }
        return state.position
    }

    private func slot(_ number: Int, _ state: State) -> JournalSlot { state.slots[(number - 1) % capacity] }

    private static func dropOldest(_ state: inout State) {
        if !state.traces.isEmpty { state.traces[state.oldest] = nil }
        if !state.frames.isEmpty { state.frames[state.oldest] = nil }
        state.oldest += 1
    }

    private static func put(_ bytes: [UInt8], _ state: inout State) {
        let end = state.position + bytes.count
        if state.position == state.arena.count {
            state.arena.append(contentsOf: bytes)
        } else {
            // There is room: the bytes lie inside, or the arena still grows.
            let inside = min(bytes.count, state.arena.count - state.position)
            unsafe state.arena.withUnsafeMutableBufferPointer { arena in
                unsafe bytes.withUnsafeBufferPointer { source in
                    let place = unsafe UnsafeMutableBufferPointer(
                        rebasing: arena[state.position..<(state.position + inside)]
                    )
                    _ = unsafe place.update(fromContentsOf: UnsafeBufferPointer(rebasing: source[..<inside]))
                }
            }
            if inside < bytes.count { state.arena.append(contentsOf: bytes[inside...]) }
        }
        state.position = end
    }

    // MARK: Reading

    /// The stored entries, oldest first.
    var entries: [JournalEntry] { entries(after: 0) }

    /// The stored entries with greater numbers, oldest first. Only these are copied and decoded, and the journal is locked only
    /// while they are copied.
    func entries(after number: Int) -> [JournalEntry] {
        state.withLock { copies(after: number, $0) }.compactMap { $0.decoded }
    }

    /// The entry with that number; nil if it is not stored, or not any more.
    func entry(_ number: Int) -> JournalEntry? {
        state.withLock { copy(number, $0) }?.decoded
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
        let (copied, wasCleared) = state.withLock { state -> ([StoredJournalEntry], Bool) in
            let last = position
            position = Position(number: state.count, clearCount: state.clearCount)
            return (copies(after: last.number, state), state.clearCount != last.clearCount)
        }
        return (copied.compactMap { $0.decoded }, wasCleared)
    }

    private func copies(after number: Int, _ state: State) -> [StoredJournalEntry] {
        guard number < state.count else { return [] }
        return (max(state.oldest, number + 1)..<(state.count + 1)).compactMap { copy($0, state) }
    }

    private func copy(_ number: Int, _ state: State) -> StoredJournalEntry? {
        guard number >= state.oldest, number <= state.count else { return nil }
        let slot = slot(number, state)
        let bodyStart = slot.start + Int(slot.headCount)
        return StoredJournalEntry(
            slot: slot,
            requestHead: Array(state.arena[slot.start..<bodyStart]),
            requestBody: Array(state.arena[bodyStart..<(bodyStart + Int(slot.bodyCount))]),
            replyHead: state.replies[(number - 1) % capacity],
            frame: state.frames[number],
            trace: state.traces[number]
        )
    }

    /// The number of entries ever written.
    var countEver: Int { state.withLock { $0.count } }

    /// When the last entry was written, on the world's monotonic clock.
    var lastActivity: MonotonicTime { state.withLock { $0.lastActivity } }

    /// Removes all entries; numbers continue.
    func clear() {
        state.withLock { state in
            state.oldest = state.count + 1
            state.clearCount += 1
            state.traces.removeAll()
            state.frames.removeAll()
        }
    }

    // MARK: Observing

    /// Calls `body` with every new entry, on the thread that writes it.
    func observe(_ body: @escaping @Sendable (JournalEntry) -> Void) -> UInt64 {
        state.withLock { state in
            state.lastObserver += 1
            state.observers[state.lastObserver] = body
            observerCount.store(state.observers.count, ordering: .relaxed)
            return state.lastObserver
        }
    }

    func stopObserving(_ id: UInt64) {
        // Released after the lock: the observer's deinitialisation may call this journal.
        let removed = state.withLock { state in
            defer { observerCount.store(state.observers.count, ordering: .relaxed) }
            return state.observers.removeValue(forKey: id)
        }
        _ = consume removed
    }
}
