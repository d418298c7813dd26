import LarderStorage
import Synchronization

/// A sequence whose elements other sequences make. Each iteration runs them separately, until it ends. A slow reader gets the newest one.
private struct Relay<Element: Sendable>: AsyncSequence, Sendable {
    let run: @Sendable (AsyncStream<Element>.Continuation) async -> Void

    init(_ run: @escaping @Sendable (AsyncStream<Element>.Continuation) async -> Void) { self.run = run }

    func makeAsyncIterator() -> AsyncStream<Element>.Iterator {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { elements in
            let task = Task {
                await run(elements)
                elements.finish()
            }
            elements.onTermination = { _ in task.cancel() }
        }.makeAsyncIterator()
    }
}

/// The newest elements of two sequences.
private final class Pair<First: Sendable, Second: Sendable>: Sendable {
    private let elements: AsyncStream<(First, Second)>.Continuation
    private let newest = Mutex<(First?, Second?)>((nil, nil))

    init(_ elements: AsyncStream<(First, Second)>.Continuation) { self.elements = elements }

    /// Shows both, under the lock, so that no older pair follows a newer one.
    func set(_ change: (inout (First?, Second?)) -> Void) {
        newest.withLock { newest in
            change(&newest)
            if let first = newest.0, let second = newest.1 { elements.yield((first, second)) }
        }
    }
}

extension LarderCache {
    /// The snapshots of the resource that another sequence names: a read that depends on another one. While it names none nothing is
    /// requested, and the last snapshot stands. The sequence ends when both have ended.
    ///
    ///     let orders = cache.snapshots(following: cache.snapshots(user).map { $0.value.map { ordersOfUser($0.id) } })
    public func snapshots<Value, Resources: AsyncSequence & Sendable>(
        following resources: Resources,
        _ policy: ReadPolicy? = nil
    ) -> some AsyncSequence<Snapshot<Value>, Never> & Sendable
    where Resources.Element == Resource<Value>?, Resources.Failure == Never {
        Relay<Snapshot<Value>> { elements in
            var key: QueryKey?
            var read: Task<Void, Never>?
            for await resource in resources where resource?.key != key {
                key = resource?.key
                read?.cancel()
                // Nothing older is shown after its successor has begun.
                await read?.value
                read = resource.map { resource in
                    Task { for await snapshot in self.snapshots(resource, policy) { _ = elements.yield(snapshot) } }
                }
            }
            let last = read
            await withTaskCancellationHandler {
                await last?.value
            } onCancel: {
                last?.cancel()
            }
        }
    }

    /// The newest elements of two sequences together, once both have one, and after each change of one of them.
    ///
    ///     for await (user, orders) in LarderCache.combine(cache.snapshots(user), cache.snapshots(orders)) { … }
    public static func combine<First: AsyncSequence & Sendable, Second: AsyncSequence & Sendable>(
        _ first: First,
        _ second: Second
    ) -> some AsyncSequence<(First.Element, Second.Element), Never> & Sendable
    where
        First.Element: Sendable, Second.Element: Sendable, First.Failure == Never, Second.Failure == Never
    {
        Relay<(First.Element, Second.Element)> { elements in
            let pair = Pair<First.Element, Second.Element>(elements)
            await withDiscardingTaskGroup { group in
                group.addTask { for await element in first { pair.set { $0.0 = element } } }
                group.addTask { for await element in second { pair.set { $0.1 = element } } }
            }
        }
    }
}
