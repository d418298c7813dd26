/// Has a memory guard steer an image pipeline: loads and decodes that can wait are given up, prefetch stops, less is done at
/// once and in smaller sizes; and pixels are held at the guard's share of their budgets, so that memory falls and stays down.
public struct ImagePipelineReactor: MemoryReactor {
    /// What it is called in reports.
    public let name: String
    private let pipeline: ImagePipeline
    private let sparing: ImagePriority

    /// - Parameters:
    ///   - pipeline: what is steered. Its concurrency, quality, prefetch and share of memory belong to the guard from then on.
    ///   - name: what it is called in reports.
    ///   - sparing: work of this priority and more goes on when loads are cancelled: somebody looks at its place on the screen.
    public init(_ pipeline: ImagePipeline, name: String = "images", sparing: ImagePriority = .high) {
        self.name = name
        self.pipeline = pipeline
        self.sparing = sparing
    }

    /// Cancels, pauses and slows down, or goes on.
    public func stopWork(for posture: MemoryPosture) -> Int {
        if posture.allowsPrefetch { pipeline.resumePrefetch() } else { pipeline.pausePrefetch() }
        let configuration = pipeline.configuration
        pipeline.setConcurrency(
            loads: posture.concurrency(configuration.loadsMaximum),
            decodes: posture.concurrency(configuration.decodesMaximum)
        )
        pipeline.setQuality(posture.qualityFactor)
        guard posture.cancelsLoads else { return 0 }
        let before = pipeline.workload.loads
        pipeline.cancelPending(below: sparing)
        return max(0, before - pipeline.workload.loads)
    }

    /// Holds the pixels at the posture's share of their budgets, and gives what the allocator keeps back to the system.
    public func releaseMemory(for posture: MemoryPosture) -> Int {
        let before = pipeline.memoryCost
        pipeline.setMemoryShare(posture.cacheShare)
        let freed = max(0, before - pipeline.memoryCost)
        // Freed pages in the middle of the heap stay resident otherwise, and nothing was gained. While pressure lasts, too: what
        // comes and goes meanwhile leaves holes.
        if freed > 0 || posture.level > .normal { HeapTrim.trim() }
        return freed
    }
}
