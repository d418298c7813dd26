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

/// The read that a dependent read follows at present.
private final class CurrentRead: Sendable {
    private let state = Mutex<(task: Task<Void, Never>?, isCancelled: Bool)>((nil, false))

    /// Ends the present read before the next one begins, so that nothing older is shown after its successor has begun.
    func follow(_ next: (@Sendable () async -> Void)?) async {
        let last = state.withLock { $0.task.take() }
        last?.cancel()
        await last?.value
        state.withLock { state in if !state.isCancelled { state.task = next.map { next in Task { await next() } } } }
    }

    func wait() async { await state.withLock { $0.task }?.value }

    func cancel() {
        state.withLock { state in
            state.isCancelled = true
            return state.task
        }?.cancel()
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
            let read = CurrentRead()
            await withTaskCancellationHandler {
                var key: QueryKey?
                for await resource in resources where resource?.key != key {
                    key = resource?.key
                    guard let resource else {
                        await read.follow(nil)
                        continue
                    }
                    await read.follow {
                        for await snapshot in self.snapshots(resource, policy) { _ = elements.yield(snapshot) }
                    }
                }
                await read.wait()
            } onCancel: {
                read.cancel()
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
