public import LarderResources
public import Observation

/// The newest element of a sequence, for a view that redraws by observation (`withObservationTracking`, `Observations`).
///
/// Made by `observed` of a cache, a local query, a timeline and an outbox. It observes until it is released or the sequence ends: a resource is then
/// requested and refreshed as for a reader of `LarderCache.snapshots`.
///
///     let article = client.cache.observed(resource)
///     for await title in Observations({ article.current?.value?.title }) { print(title ?? "not loaded") }
@MainActor @Observable public final class Observed<Element: Sendable> {
    /// The newest element; nil before the first one.
    public private(set) var current: Element?
    @ObservationIgnored private var task: Task<Void, Never>?

    init<Elements: AsyncSequence & Sendable>(_ elements: Elements)
    where Elements.Element == Element, Elements.Failure == Never {
        task = Task { [weak self] in
            for await element in elements {
                guard let self else { return }
                self.current = element
            }
        }
    }

    deinit { task?.cancel() }
}

extension LarderCache {
    /// The newest snapshot of a resource, as `snapshots` has them.
    @MainActor public func observed<Value>(
        _ resource: Resource<Value>,
        _ policy: ReadPolicy? = nil
    ) -> Observed<Snapshot<Value>> {
        Observed(snapshots(resource, policy))
    }
}

extension EntityQuery {
    /// The newest result of the query, as `updates` has them.
    @MainActor public func observed() -> Observed<[Entity]> { Observed(updates) }
}

extension Timeline {
    /// The newest snapshot of the list.
    @MainActor public func observed() -> Observed<Timeline<Item>.Snapshot> { Observed(snapshots) }
}

extension Outbox {
    /// The newest state of the outbox.
    @MainActor public func observed() -> Observed<Outbox.Status> { Observed(statuses) }
}
