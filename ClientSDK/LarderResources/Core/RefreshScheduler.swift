import LarderEvents
import LarderTime
import Synchronization

/// Wakes observed nodes when their values become stale or are due for a refresh. One timer serves all nodes.
///
/// Safe from any thread.
final class RefreshScheduler: Sendable {
    private struct Entry {
        weak var node: (any AnyNode)?
        var due: MonotonicTime
    }

    private struct State {
        var entries: [ObjectIdentifier: Entry] = [:]
        var task: Task<Void, Never>?
        var next: MonotonicTime?
        var isClosed = false
    }

    private let clock: any MonotonicClock
    private let sleeper: any MonotonicClock
    private let state = Mutex(State())

    init(clock: any MonotonicClock, sleeper: any MonotonicClock) {
        self.clock = clock
        self.sleeper = sleeper
    }

    /// Wakes a node at a time, in place of its earlier time; nil: removes the node. May be called under the node's lock.
    ///
    /// - Returns: the wait that this one replaces. The caller cancels it without a lock, because that calls the app's clock.
    func schedule(_ node: any AnyNode, at due: MonotonicTime?) -> Task<Void, Never>? {
        let id = ObjectIdentifier(node)
        return state.withLock { state in
            guard !state.isClosed else { return nil }
            guard let due else {
                state.entries[id] = nil
                guard state.entries.isEmpty else { return nil }
                state.next = nil
                return state.task.take()
            }
            state.entries[id] = Entry(node: node, due: due)
            if let next = state.next, next <= due { return nil }
            return wait(until: due, &state)
        }
    }

    /// Wakes every waiting node, because its time may have changed.
    func lookAtAll() {
        let now = clock.uptime
        let replaced = state.withLock { state -> Task<Void, Never>? in
            guard !state.isClosed, !state.entries.isEmpty else { return nil }
            for id in state.entries.keys { state.entries[id]?.due = now }
            return wait(until: now, &state)
        }
        replaced?.cancel()
    }

    /// - Returns: the wait that this one replaces.
    private func wait(until due: MonotonicTime, _ state: inout State) -> Task<Void, Never>? {
        let replaced = state.task
        state.next = due
        let sleeper = sleeper
        state.task = Task { [weak self] in
            do { try await sleeper.sleep(until: due) } catch { return }
            // What is due later has a reason of its own, not that of the request that planned it.
            RequestReason.$current.withValue(nil) { self?.wake() }
        }
        return replaced
    }

    private func wake() {
        let now = clock.uptime
        let nodes = state.withLock { state -> [any AnyNode] in
            guard !state.isClosed else { return [] }
            let due = state.entries.filter { $0.value.due <= now }
            for id in due.keys { state.entries[id] = nil }
            state.next = nil
            state.task = nil
            // The task that is running has ended its wait.
            if let next = state.entries.values.map(\.due).min() { _ = wait(until: next, &state) }
            return due.values.compactMap { entry in entry.node.map { (entry.due, $0) } }.sorted {
                ($0.0, $0.1.number) < ($1.0, $1.1.number)
            }.map(\.1)
        }
        for node in nodes { node.timeCame() }
    }

    func close() {
        let task = state.withLock { state in
            state.isClosed = true
            state.entries = [:]
            return state.task.take()
        }
        task?.cancel()
    }
}
