import Synchronization

/// Functions that are called when something happens, in the order in which they were added. Safe from any thread.
package final class Observers<Value: Sendable>: Sendable {
    private struct State {
        var bodies: [UInt64: @Sendable (Value) -> Void] = [:]
        var lastID: UInt64 = 0
    }

    private let state = Mutex(State())

    package init() {}

    package var isEmpty: Bool { state.withLock { $0.bodies.isEmpty } }

    /// - Returns: what removes the function.
    package func add(_ body: @escaping @Sendable (Value) -> Void) -> @Sendable () -> Void {
        let id = state.withLock { state in
            state.lastID += 1
            state.bodies[state.lastID] = body
            return state.lastID
        }
        return { [self] in
            // Released after the lock: its deinitialisation may call this object.
            let removed = state.withLock { $0.bodies.removeValue(forKey: id) }
            _ = consume removed
        }
    }

    /// Calls the functions on this thread with the value, which is made only if there are any.
    package func tell(_ value: () -> Value) {
        let bodies = state.withLock { state in
            state.bodies.isEmpty ? [] : state.bodies.sorted { $0.key < $1.key }.map(\.value)
        }
        guard !bodies.isEmpty else { return }
        let value = value()
        for body in bodies { body(value) }
    }

    package func tell(_ value: Value) { tell { value } }
}
