import Synchronization

/// What a client's parts are told of the hour: the stricter of what memory and the network ask for, and the switches.
///
/// Safe from any thread. One caller applies at a time, holding no lock, until nothing is newer than what was applied.
final class LarderClientSteering: Sendable {
    private struct Wishes: Hashable {
        var posture = MemoryPosture.normal
        var conduct = DegradationPolicy.Conduct.unrestricted
        var mayPrefetch = true
    }

    private struct State {
        var wishes = Wishes()
        /// What was applied last; nothing yet.
        var applied: Wishes?
        var isApplying = false
    }

    private let images: ImagePipeline
    private let cache: LarderCache
    private let state = Mutex(State())

    init(_ images: ImagePipeline, _ cache: LarderCache) {
        self.images = images
        self.cache = cache
    }

    /// Stops work as memory demands it; how many loads that cancelled.
    func stopWork(for posture: MemoryPosture) -> Int {
        change { $0.posture = posture }
        guard posture.cancelsLoads else { return 0 }
        let before = images.workload.loads
        images.cancelPending(below: .high)
        return max(0, before - images.workload.loads)
    }

    /// Gives memory back; about how many bytes.
    func releaseMemory(for posture: MemoryPosture) -> Int {
        let before = images.memoryCost + cache.memoryCost
        // Held at that share and not only cut down to it once: what is decoded next would fill it again.
        images.setMemoryShare(posture.cacheShare)
        if posture.cacheShare < 1 {
            cache.trimMemory(toBytes: posture.limit(cache.configuration.memoryBytesMaximum))
        }
        let freed = max(0, before - images.memoryCost - cache.memoryCost)
        // Freed pages in the middle of the heap stay resident otherwise.
        if freed > 0 || posture.level > .normal { HeapTrim.trim() }
        return freed
    }

    /// Does as the network allows.
    func follow(_ conduct: DegradationPolicy.Conduct) { change { $0.conduct = conduct } }

    /// Whether pictures may be fetched at all that nobody asked for.
    func setPrefetch(_ isAllowed: Bool) { change { $0.mayPrefetch = isAllowed } }

    private func change(_ body: (inout Wishes) -> Void) {
        let isMine = state.withLock { state in
            body(&state.wishes)
            defer { state.isApplying = true }
            return !state.isApplying
        }
        guard isMine else { return }
        while true {
            let next = state.withLock { state -> (old: Wishes?, new: Wishes)? in
                guard state.applied != state.wishes else {
                    state.isApplying = false
                    return nil
                }
                defer { state.applied = state.wishes }
                return (state.applied, state.wishes)
            }
            guard let next else { return }
            apply(next.new, after: next.old)
        }
    }

    private func apply(_ wishes: Wishes, after old: Wishes?) {
        let (posture, conduct) = (wishes.posture, wishes.conduct)
        let mayPrefetch =
            wishes.mayPrefetch && posture.allowsPrefetch && conduct.allowsPrefetch && !conduct.isReturning
        if mayPrefetch { images.resumePrefetch() } else { images.pausePrefetch() }
        let configuration = images.configuration
        images.setConcurrency(
            loads: min(
                posture.concurrency(configuration.loadsMaximum),
                conduct.concurrency(configuration.loadsMaximum)
            ),
            // The network does not make decoding dearer.
            decodes: posture.concurrency(configuration.decodesMaximum)
        )
        images.setQuality(posture.qualityFactor)
        let before = old?.conduct ?? .unrestricted
        guard before != conduct else { return }
        cache.conductChanged()
        guard conduct.refreshesByItself, !before.refreshesByItself else { return }
        // What failed for want of a network is no failure of the picture's.
        images.forgetFailures()
        cache.networkReturned()
    }
}
