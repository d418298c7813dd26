public import Larder
import LarderTime
import Synchronization

/// Holds replies until the test releases them, in an order that the test chooses.
///
/// Safe from any task. A held request that is cancelled throws `.cancelled`.
public final class TransportGate: Sendable {
    private typealias Passage = Pending<Bool>

    private struct State {
        var isOpen: Bool
        var held: [(id: UInt64, passage: Passage)] = []
        var watchers: [(id: UInt64, count: Int, passage: Passage)] = []
        var lastID: UInt64 = 0
    }

    private let state: Mutex<State>

    /// - Parameter isOpen: whether everything passes until `close()`.
    public init(isOpen: Bool = false) { state = Mutex(State(isOpen: isOpen)) }

    /// The number of waiting requests.
    public var heldCount: Int { state.withLock { $0.held.count } }

    /// Releases all waiting requests, and lets later ones pass.
    public func open() {
        let held = state.withLock { state in
            state.isOpen = true
            defer { state.held = [] }
            return state.held
        }
        for one in held { one.passage.finish(true) }
    }

    /// Holds later requests.
    public func close() { state.withLock { $0.isOpen = false } }

    /// Releases the first `count` waiting requests in order of arrival. The gate stays open or closed.
    ///
    /// - Returns: the number of released requests.
    @discardableResult public func release(_ count: Int = 1) -> Int {
        let held = state.withLock { state in
            let first = Array(state.held.prefix(max(0, count)))
            state.held.removeFirst(first.count)
            return first
        }
        for one in held { one.passage.finish(true) }
        return held.count
    }

    /// Waits at the gate.
    ///
    /// - Throws: `.cancelled` if the calling task is cancelled.
    public func pass() async throws(TransportError) {
        let passage = Passage()
        let (id, ended): (UInt64, [Passage]) = state.withLock { state in
            state.lastID += 1
            guard !state.isOpen else { return (state.lastID, [passage]) }
            state.held.append((state.lastID, passage))
            let count = state.held.count
            let seen = state.watchers.filter { $0.count <= count }.map(\.passage)
            state.watchers.removeAll { $0.count <= count }
            return (state.lastID, seen)
        }
        for passage in ended { passage.finish(true) }
        let passed = await passage.value(ifCancelled: false) {
            self.state.withLock { $0.held.removeAll { $0.id == id } }
        }
        guard passed else { throw TransportError(.cancelled, "The request was cancelled while it waited at a gate.") }
    }

    /// Waits until at least `count` requests wait at the gate. Returns at once if the calling task is cancelled.
    public func waitForHeld(_ count: Int = 1) async {
        let passage = Passage()
        let (id, isThere) = state.withLock { state in
            state.lastID += 1
            guard state.held.count < count else { return (state.lastID, true) }
            state.watchers.append((state.lastID, count, passage))
            return (state.lastID, false)
        }
        if isThere { passage.finish(true) }
        _ = await passage.value(ifCancelled: false) {
            self.state.withLock { $0.watchers.removeAll { $0.id == id } }
        }
    }
}
