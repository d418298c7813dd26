import Synchronization

/// Applies the stricter limit of memory, network and flags to the image pipeline and the cache.
///
/// Safe from any thread. One caller at a time applies, without holding a lock, until the applied inputs are the newest.
final class LimitController: Sendable {
    private struct Inputs: Hashable {
        var limits = MemoryLimits.normal
        var behavior = NetworkBehavior.unrestricted
        var mayPrefetch = true
    }

    private struct State {
        var inputs = Inputs()
        /// The inputs that were applied last; nil: none yet.
        var applied: Inputs?
        var isApplying = false
    }

    private let images: ImagePipeline
    private let cache: LarderCache
    private let state = Mutex(State())

    init(_ images: ImagePipeline, _ cache: LarderCache) {
        self.images = images
        self.cache = cache
    }

    /// What the caches hold, and the loads of pictures.
    func usage() -> MemoryReaction.Usage {
        MemoryReaction.Usage(cost: images.memoryCost + cache.memoryCost, loads: images.workload.loads)
    }

    /// Cancels work at a memory level. Returns the number of cancelled loads.
    func stopWork(for limits: MemoryLimits) -> Int {
        change { $0.limits = limits }
        guard limits.cancelsLoads else { return 0 }
        let before = images.workload.loads
        images.cancelPending(below: .high)
        return max(0, before - images.workload.loads)
    }

    /// Shrinks caches at a memory level. Returns the approximate number of freed bytes.
    func releaseMemory(for limits: MemoryLimits) -> Int {
        let before = images.memoryCost + cache.memoryCost
        // The share is a lasting limit: a single trim would be undone by the next decodes.
        images.setMemoryShare(limits.cacheShare)
        if limits.cacheShare < 1 {
            cache.trimMemory(toBytes: limits.limit(cache.configuration.memoryBytesMaximum))
        }
        let freed = max(0, before - images.memoryCost - cache.memoryCost)
        // The allocator keeps freed pages resident otherwise.
        if freed > 0 || limits.level > .normal { HeapTrim.trim() }
        return freed
    }

    /// Applies the behaviour of the current network level.
    func follow(_ behavior: NetworkBehavior) { change { $0.behavior = behavior } }

    /// Allows or forbids image prefetching.
    func setPrefetch(_ isAllowed: Bool) { change { $0.mayPrefetch = isAllowed } }

    private func change(_ body: (inout Inputs) -> Void) {
        let isMine = state.withLock { state in
            body(&state.inputs)
            defer { state.isApplying = true }
            return !state.isApplying
        }
        guard isMine else { return }
        while true {
            let next = state.withLock { state -> (old: Inputs?, new: Inputs)? in
                guard state.applied != state.inputs else {
                    state.isApplying = false
                    return nil
                }
                defer { state.applied = state.inputs }
                return (state.applied, state.inputs)
            }
            guard let next else { return }
            apply(next.new, after: next.old)
        }
    }

    private func apply(_ inputs: Inputs, after old: Inputs?) {
        let (limits, behavior) = (inputs.limits, inputs.behavior)
        let mayPrefetch =
            inputs.mayPrefetch && limits.allowsPrefetch && behavior.allowsPrefetch && !behavior.isReturning
        if mayPrefetch { images.resumePrefetch() } else { images.pausePrefetch() }
        images.setPrefetchShare(mayPrefetch ? behavior.prefetchFactor : 0)
        let configuration = images.configuration
        images.setConcurrency(
            loads: min(
                limits.concurrency(configuration.loadsMaximum),
                behavior.concurrency(configuration.loadsMaximum)
            ),
            // The network level does not change the cost of decoding.
            decodes: limits.concurrency(configuration.decodesMaximum)
        )
        images.setQuality(limits.qualityFactor)
        let before = old?.behavior ?? .unrestricted
        guard before != behavior else { return }
        cache.networkBehaviorChanged()
        guard
            behavior.refreshesByItself && !before.refreshesByItself || behavior.sendsByItself && !before.sendsByItself
        else { return }
        // A request that failed without a network says nothing about the image.
        images.forgetFailures()
        cache.networkReturned()
    }
}
