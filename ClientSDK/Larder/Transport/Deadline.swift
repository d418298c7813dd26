package import LarderTime

/// Waits for `body`, but not beyond `deadline`.
///
/// At the deadline `body` is cancelled and must end; it has until then to end by itself. When the caller is cancelled, `body`
/// is too, and says itself what that means.
///
/// - Returns: what `body` gave; nil where the time was over first.
package func until<Value: Sendable>(
    _ deadline: MonotonicTime,
    by sleeper: any Sleeper,
    _ body: @escaping @Sendable () async -> Value
) async -> Value? {
    await withTaskGroup(of: DeadlineEnd<Value>.self) { group in
        group.addTask { .done(await body()) }
        group.addTask {
            do {
                try await sleeper.sleep(until: deadline)
                return .late
            } catch {
                return .cancelled
            }
        }
        defer { group.cancelAll() }
        while let end = await group.next() {
            switch end {
            case .done(let value): return value
            case .late: return nil
            case .cancelled: continue
            }
        }
        return nil
    }
}

private enum DeadlineEnd<Value: Sendable>: Sendable {
    case done(Value)
    case late
    case cancelled
}
