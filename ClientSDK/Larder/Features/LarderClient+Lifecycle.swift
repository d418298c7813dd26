extension LarderClient {
    /// Has a memory guard stop the client's work and take its memory back when memory is short, in that order: what is cleared
    /// while loads go on comes back at once.
    ///
    /// - Returns: what keeps it so; released, the guard lets the client be.
    public func obey(_ memory: MemoryGuard) -> EventRegistration {
        let images = images
        let cache = cache
        return memory.register(
            MemoryReaction(
                "larder client",
                stop: { posture in
                    if posture.allowsPrefetch { images.resumePrefetch() } else { images.pausePrefetch() }
                    images.setConcurrency(
                        loads: max(1, Int(6 * posture.concurrencyFactor)),
                        decodes: max(1, Int(2 * posture.concurrencyFactor))
                    )
                    images.setQuality(posture.qualityFactor)
                    guard posture.cancelsLoads else { return 0 }
                    let before = images.workload.loads
                    images.cancelPending(below: .high)
                    return max(0, before - images.workload.loads)
                },
                release: { posture in
                    let before = images.memoryCost
                    images.trimMemory(toShare: posture.cacheShare)
                    let share = Double(cache.configuration.memoryBytesMaximum) * posture.cacheShare
                    if posture.cacheShare < 1 { cache.trimMemory(toBytes: Int(share)) }
                    return max(0, before - images.memoryCost)
                }
            )
        )
    }

    /// Follows a network monitor until the calling task is cancelled: when the network returns, what was changed here is sent, what
    /// somebody looks at is refreshed, and pictures that failed are tried again.
    ///
    /// The monitor's `isOffline` belongs into `CacheConfiguration.mayUseNetwork`, and its jitter spreads the return of many.
    public func follow(_ network: NetworkMonitor) async {
        for await _ in network.resumes {
            images.forgetFailures()
            cache.networkReturned()
        }
    }
}
