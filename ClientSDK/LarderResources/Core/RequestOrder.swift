import LarderEvents
import LarderStorage
import Synchronization

/// The order in which requests began, and the results of requests while older ones are in flight.
///
/// The reply of an older request must not replace the reply of a later one. Versions decide for entities that have them; for all others
/// this type decides, as long as an older request is in flight. Safe from any thread.
final class RequestOrder: Sendable {
    private struct State {
        var last: UInt64 = 0
        var active = ActiveOrders()
        /// What was known when the requests in flight began.
        var starts: [UInt64: Start] = [:]
        /// The number of records at which those that no request needs are dropped.
        var recordsMaximum = 512
        var applied: [StoredKey: Applied] = [:]
        var invalidated: [StoredKey: UInt64] = [:]
        var edits: [QueryKey: [QueryEdit]] = [:]
    }

    /// What was known when a request began.
    struct Start: Sendable {
        /// The number of foreign commits that were seen before the requested value was looked at.
        var seenCommits: UInt64
        /// What was invalid then: the reply ends this.
        var invalid: Set<StoredKey>
    }

    private struct Applied {
        var order: UInt64
        var isRemoval: Bool
    }

    /// A change to a list by an event.
    struct QueryEdit: Sendable {
        let order: UInt64
        let change: @Sendable (inout DiskQuery) -> Void
    }

    /// The maximum number of recorded changes of a list. Beyond, the list is invalidated.
    private static let editsMaximum = 1_024

    private let state = Mutex(State())

    /// Begins a request.
    func begin(_ start: Start) -> UInt64 {
        state.withLock { state in
            state.last += 1
            state.active.append(state.last)
            state.starts[state.last] = start
            return state.last
        }
    }

    /// What was known when a request in flight began.
    func start(of order: UInt64) -> Start? { state.withLock { $0.starts[order] } }

    /// The order of an event that has already happened.
    func now() -> UInt64 {
        state.withLock { state in
            state.last += 1
            return state.last
        }
    }

    /// Ends a request and drops records that only it needed.
    func end(_ order: UInt64) {
        state.withLock { state in
            state.active.remove(order)
            state.starts[order] = nil
            guard !state.applied.isEmpty || !state.invalidated.isEmpty || !state.edits.isEmpty else { return }
            guard let oldest = state.active.oldest else {
                state.recordsMaximum = 512
                state.applied.removeAll()
                state.invalidated.removeAll()
                state.edits.removeAll()
                return
            }
            // A scan only where the number has doubled, so that it costs O(1) for each record.
            guard state.applied.count + state.invalidated.count > state.recordsMaximum else { return }
            state.applied = state.applied.filter { $0.value.order > oldest }
            state.invalidated = state.invalidated.filter { $0.value > oldest }
            state.recordsMaximum = max(512, 2 * (state.applied.count + state.invalidated.count))
        }
    }

    /// Whether a newer result than that of the request was applied to a key.
    func isOvertaken(_ key: StoredKey, by order: UInt64) -> Bool { lastApplied(key) > order }

    /// The latest request whose result was applied to a key; 0 if no older one is in flight.
    func lastApplied(_ key: StoredKey) -> UInt64 { state.withLock { $0.applied[key]?.order ?? 0 } }

    /// Whether the latest result that was applied to a key is its removal, after the request had begun.
    func isRemoved(_ key: StoredKey, since order: UInt64) -> Bool {
        state.withLock { $0.applied[key].map { $0.isRemoval && $0.order > order } ?? false }
    }

    /// Whether a key was invalidated after the request had begun.
    func isInvalidated(_ key: StoredKey, since order: UInt64) -> Bool {
        state.withLock { ($0.invalidated[key] ?? 0) > order }
    }

    func noteApplied(_ key: StoredKey, _ order: UInt64, isRemoval: Bool = false) {
        state.withLock { state in
            guard !state.active.isEmpty, state.applied[key].map({ $0.order <= order }) ?? true else { return }
            state.applied[key] = Applied(order: order, isRemoval: isRemoval)
        }
    }

    /// The changes of a list since the request began, which its answer may not contain.
    func edits(of key: QueryKey, since order: UInt64) -> [QueryEdit] {
        state.withLock { $0.edits[key]?.filter { $0.order > order } ?? [] }
    }

    func noteEdited(_ key: QueryKey, _ order: UInt64, _ change: @escaping @Sendable (inout DiskQuery) -> Void) {
        state.withLock { state in
            guard let oldest = state.active.oldest else { return }
            var edits = state.edits[key] ?? []
            if edits.count >= Self.editsMaximum {
                edits.removeAll { $0.order < oldest }
                if edits.count >= Self.editsMaximum {
                    edits.removeFirst(Self.editsMaximum / 2)
                    state.invalidated[.query(key)] = max(order, state.invalidated[.query(key)] ?? 0)
                }
            }
            edits.append(QueryEdit(order: order, change: change))
            state.edits[key] = edits
        }
    }

    func noteInvalidated(_ key: StoredKey, _ order: UInt64) {
        state.withLock { state in
            guard !state.active.isEmpty else { return }
            state.invalidated[key] = max(order, state.invalidated[key] ?? 0)
        }
    }
}

/// The orders of the requests in flight, of which the oldest is needed. Each operation costs O(1) on average.
struct ActiveOrders: Sendable {
    /// In ascending order, since each is larger than those before; some have ended.
    private var begun = FIFO<UInt64>()
    private var ended: Set<UInt64> = []

    var isEmpty: Bool { oldest == nil }

    var oldest: UInt64? { begun.first }

    mutating func append(_ order: UInt64) { begun.append(order) }

    mutating func remove(_ order: UInt64) {
        guard let first = begun.first, order >= first else { return }
        ended.insert(order)
        while let first = begun.first, ended.remove(first) != nil { _ = begun.popFirst() }
    }
}
