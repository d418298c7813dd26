package import LarderDevice
package import LarderImages
package import LarderMemory

extension MemoryReaction {
    /// Shrinks a memory tier under pressure and restores it afterwards. The guard owns the tier's limits from then on.
    ///
    /// - Parameter full: the limits without pressure. The cost shrinks where it is limited, otherwise the count.
    package static func tier<Key, Value>(
        _ name: String,
        _ tier: MemoryTier<Key, Value>,
        full: MemoryTier<Key, Value>.Limits
    ) -> MemoryReaction {
        MemoryReaction(
            name,
            measure: { Usage(cost: tier.cost) },
            release: { allowed in
                let before = tier.cost
                var limits = full
                limits.cost = allowed.limit(full.cost)
                if full.cost == .max || limits.cost == 0 { limits.count = allowed.limit(full.count) }
                // Trimming before the limits change reports the departures with the reason `trimmed`.
                tier.trim(toCount: limits.count, cost: limits.cost)
                tier.setLimits(limits)
                return max(0, before - tier.cost)
            }
        )
    }

    /// Cancels loads and decodes that can wait, stops prefetching, lowers concurrency and size, and holds decoded pixels at the
    /// allowed share of their budget. The guard owns these settings of the pipeline from then on.
    ///
    /// - Parameter sparing: requests of this priority or higher are not cancelled.
    package static func images(
        _ pipeline: ImagePipeline,
        name: String = "images",
        sparing: ImageRequest.Priority = .high
    ) -> MemoryReaction {
        MemoryReaction(
            name,
            measure: { Usage(cost: pipeline.memoryCost, loads: pipeline.workload.loads) },
            stop: { allowed in
                if allowed.allowsPrefetch { pipeline.resumePrefetch() } else { pipeline.pausePrefetch() }
                let configuration = pipeline.configuration
                pipeline.setConcurrency(
                    loads: allowed.concurrency(configuration.loadsMaximum),
                    decodes: allowed.concurrency(configuration.decodesMaximum)
                )
                pipeline.setQuality(allowed.qualityFactor)
                guard allowed.cancelsLoads else { return 0 }
                let before = pipeline.workload.loads
                pipeline.cancelPending(below: sparing)
                return max(0, before - pipeline.workload.loads)
            },
            release: { allowed in
                let before = pipeline.memoryCost
                pipeline.setMemoryShare(allowed.cacheShare)
                let freed = max(0, before - pipeline.memoryCost)
                // The allocator keeps freed pages in the middle of the heap until it is asked to return them to the system. New
                // allocations leave holes while pressure lasts, so it is asked each time.
                if freed > 0 || allowed.level > .normal { HeapTrim.trim() }
                return freed
            }
        )
    }
}
