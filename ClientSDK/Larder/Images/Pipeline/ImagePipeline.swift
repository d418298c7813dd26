public import LarderTime
import Synchronization

/// Pictures: from memory (pixels), disk (files) or a server, downsampled while they are decoded, each piece of work done once.
///
///     let pipeline = ImagePipeline(ImagePipeline.Configuration(transport: transport, disk: disk))
///     let image = try await pipeline.image(for: ImageRequest(url: url, target: ImageTarget(width: 320, height: 240)))
///
/// Requests for the same bytes share a download and requests for the same result a decode. Work has the highest priority of
/// those who wait for it and stops when the last of them leaves. What is damaged, in transit or on disk, is never shown and is
/// fetched again. Safe from any thread: state changes under one lock at the moment of the call, in the order of the calls.
public final class ImagePipeline: Sendable {
    /// How a pipeline is set up.
    public struct Configuration: Sendable {
        /// How requests are sent.
        public var transport: any Transport
        /// Where files are kept: a store that holds nothing else, because erasing erases all of it. Nil keeps none.
        public var disk: DiskStore?
        /// What decodes.
        public var decoders = ImageDecoders()
        /// How large pictures may be.
        public var limits = ImageDecodingLimits()
        /// How many bytes of pixels are kept, and from which size on a picture is a large one.
        public var memory = SegmentedMemoryTier<String, DecodedImage>.Budgets(
            small: 32 << 20,
            large: 64 << 20,
            threshold: 1 << 20
        )
        /// How many downloads run at once.
        public var loadsMaximum = 6
        /// How many pictures are decoded at once.
        public var decodesMaximum = 2
        /// How many bytes a file may have.
        public var bytesMaximum = 32 << 20
        /// What leaves memory first: the pictures with the lowest score (`EvictionPolicy.greedyDual`). By default that is
        /// what was cheap to get and is large. Called when a picture is stored; it must not wait. Nil for `.standard` without
        /// scores.
        public var score: (@Sendable (ImageWorth) -> Double)? = { $0.effortForSize }
        /// Which pixels that leave memory go to the disk. Nil for none: their files are there.
        public var spill: ImageSpillRules?
        /// How many bytes of broken-off downloads are kept, to go on from: on disk, where what came may be stored, and it also
        /// survives the process; otherwise in memory.
        public var partialBytesMaximum = 8 << 20
        /// For how long they are kept on disk.
        public var partialLifetime: Duration = .seconds(86_400)
        /// The choices that RFC 9111 leaves. Pictures may stand in for an error for 30 days, unless their server forbids it.
        public var policy: HTTPCachePolicy = {
            var policy = HTTPCachePolicy()
            policy.staleIfError = .seconds(30 * 86_400)
            return policy
        }()
        /// How long a file is fresh whose server says nothing of it, nor when it was last changed.
        public var standardLifetime: Duration = .seconds(86_400)
        /// How long a failure is remembered; asking again within it fails at once. Longer where the server wants to be left alone
        /// (`Retry-After`), up to five minutes.
        public var negativeLifetime: Duration = .seconds(5)
        /// When downloads are tried again.
        public var retry = ImageRetryPolicy()
        /// Where decoding waits for idle moments; what has priority `.high` or more does not wait. Nil: nothing waits.
        public var idle: IdleScheduler?
        /// What freshness goes by.
        public var clock: any WallClock = SystemWallClock()
        /// What durations go by.
        public var uptime: any MonotonicClock = SystemMonotonicClock()
        /// Told of what happens, on any thread, outside of locks. It must not wait. Nil costs nothing.
        public var onEvent: (@Sendable (ImageEvent) -> Void)?

        /// A pipeline over a transport.
        public init(transport: any Transport, disk: DiskStore? = nil) {
            self.transport = transport
            self.disk = disk
        }
    }

    /// How the pipeline is kept.
    public let configuration: Configuration
    let memory: SegmentedMemoryTier<ImageResultKey, MemoryPicture>
    let spill: DiskSpill<ImageResultKey, MemoryPicture>?
    let loader: ImageLoader
    let state: Mutex<ImagePipelineState>
    /// What left the memory while the lock was held; told after it.
    private let evicted: ImageDepartures

    /// A pipeline. Costs nothing until it is used.
    public init(_ configuration: Configuration) {
        self.configuration = configuration
        state = Mutex(
            ImagePipelineState(
                loadsMaximum: max(1, configuration.loadsMaximum),
                decodesMaximum: max(1, configuration.decodesMaximum)
            )
        )
        let onEvent = configuration.onEvent
        let report: @Sendable (() -> ImageEvent) -> Void = { event in
            if let onEvent { onEvent(event()) }
        }
        let departures = ImageDepartures()
        evicted = departures
        var onDeparture: (@Sendable (ImageDepartures.Departure) -> Void)?
        if onEvent != nil || configuration.spill != nil { onDeparture = { departures.add($0) } }
        let failed: @Sendable (any Error) -> Void = { error in report { .storageFailed(DiskError(error)) } }
        spill = configuration.disk.flatMap { disk in
            configuration.spill?.makeSpill(disk, configuration.uptime, configuration.clock, onFailure: failed)
        }
        let score = configuration.score
        let budgets = configuration.memory
        memory = SegmentedMemoryTier(
            .init(small: budgets.small, large: budgets.large, threshold: budgets.threshold),
            clock: configuration.uptime,
            onDeparture: onDeparture,
            score: score.map { score in { _, picture, _ in score(picture.worth) } }
        )
        var policy = configuration.policy
        policy.bodyBytesMaximum = max(policy.bodyBytesMaximum, configuration.bytesMaximum)
        let store = ImageStore(
            configuration.disk,
            configuration.clock,
            policy,
            partBytesMaximum: configuration.partialBytesMaximum,
            partLifetime: configuration.partialLifetime,
            report: { error in report { .storageFailed(error) } }
        )
        loader = ImageLoader(
            transport: configuration.transport,
            store: store,
            terms: ImageTerms(policy: policy, standardLifetime: configuration.standardLifetime),
            decoders: configuration.decoders,
            retry: configuration.retry,
            clock: configuration.clock,
            uptime: configuration.uptime,
            bytesMaximum: configuration.bytesMaximum,
            report: report
        )
    }

    // MARK: Asking

    /// The picture, if its pixels are in memory and may be shown without asking anybody: as long as their response is fresh
    /// (RFC 9111 §4.2), or beyond that with `.onlyCached`. Costs a look-up.
    public func cachedImage(for request: ImageRequest) -> DecodedImage? {
        guard !request.cache.contains(.skipMemoryRead),
            let picture = memory[ImageResultKey(request, target: request.target)], let freshness = picture.freshness,
            freshness.holds(at: configuration.clock.now) || request.cache.contains(.onlyCached)
        else { return nil }
        return picture.image
    }

    /// The picture. When the calling task is cancelled it throws `.cancelled`, and the work stops if nobody else waits.
    public func image(for request: ImageRequest) async throws(ImageError) -> DecodedImage {
        if let image = cachedImage(for: request) {
            report { .hit(url: request.url, tier: .memory) }
            return image
        }
        let task = start(request, placeholder: false)
        let result = await withTaskCancellationHandler {
            await task.waiter.image()
        } onCancel: {
            task.cancel()
        }
        return try withExtendedLifetime(task) { result }.get().0
    }

    /// Asks for the picture and gives a token for it; its stages and the picture can be awaited there.
    public func task(for request: ImageRequest) -> ImageTask { start(request, placeholder: true) }

    /// The stages of a picture: placeholder, previews, picture. Who stops reading and lets go of it leaves.
    public func stages(for request: ImageRequest) -> ImageStages { task(for: request).stages }

    /// Fetches and decodes pictures that nobody waits for yet, after everything that somebody waits for.
    public func prefetch(_ requests: [ImageRequest]) -> ImagePrefetch {
        ImagePrefetch(
            requests.map { request in
                var request = request
                request.priority = .prefetch
                return start(request, placeholder: false, keepsPicture: false)
            }
        )
    }

    // MARK: Steering

    /// Begins no prefetching until `resumePrefetch()`. What somebody waits for goes on.
    public func pausePrefetch() { change { state in state.isPrefetchPaused = true } }

    /// Prefetches again.
    public func resumePrefetch() { change { state in state.isPrefetchPaused = false } }

    /// Changes how much is done at once, 1 at least; what runs is not stopped.
    public func setConcurrency(loads: Int, decodes: Int) {
        change { state in
            state.loadsMaximum = max(1, loads)
            state.decodesMaximum = max(1, decodes)
        }
    }

    /// Has pictures decoded to a share of the sizes that are asked for, from now on: what memory is saved with under pressure.
    ///
    /// - Parameter share: of each side, from 0.1 to 1. Pictures in full size that are in memory are given nevertheless.
    public func setQuality(_ share: Double) { change { state in state.quality = min(1, max(0.1, share)) } }

    /// Holds the pixels at a share of their budgets until the next call, from 0 to 1: under pressure, memory falls and stays
    /// down. See `ImagePipelineReactor`, which has a memory guard do so.
    public func setMemoryShare(_ share: Double) {
        memory.setShare(share)
        if share == 0 { change { state in state.partials = [] } }
        tellDepartures()
    }

    /// Lets go of all pixels. Files stay, and work that runs goes on: see `cancelPending(below:)`.
    public func clearMemory() { trimMemory(toShare: 0) }

    /// Lets go of pixels until that share is left, from 0 to 1.
    public func trimMemory(toShare share: Double) {
        memory.trim(toShare: share)
        tellDepartures()
    }

    /// The bytes of pixels in memory.
    public var memoryCost: Int { memory.cost }

    /// How many downloads and decodes there are, waiting and running.
    public var workload: (loads: Int, decodes: Int) {
        state.withLock { ($0.loads.count, $0.jobs.count - $0.loads.values.reduce(0) { $0 + $1.dependents.count }) }
    }

    /// Forgets which requests have just failed: when the network is back, nothing should wait for memories.
    public func forgetFailures() { change { state in state.failures = [:] } }

    /// Gives up all work that has less than that priority: those who wait get `.cancelled`.
    public func cancelPending(below priority: ImagePriority = .highest) { giveUp(below: priority) }

    /// Erases everything, in memory and on disk. What is being fetched reaches those who wait and is kept nowhere.
    public func removeAll() {
        let epoch = state.withLock { state in
            state.epoch += 1
            state.failures = [:]
            state.partials = []
            memory.removeAll()
            return state.epoch
        }
        // What has left and is not told of yet is not to be written after this.
        evicted.take { _ in spill?.removeAll() }
        loader.store.removeAll(epoch: epoch)
        tellDepartures()
    }

    // MARK: Telling

    func report(_ event: () -> ImageEvent) {
        if let onEvent = configuration.onEvent { onEvent(event()) }
    }

    func tellDepartures() {
        let rules = configuration.spill
        let departures = evicted.take { departures in
            guard let rules, let spill else { return }
            for departure in departures where rules.takes(departure) { spill.spill(departure) }
        }
        guard let onEvent = configuration.onEvent else { return }
        for departure in departures {
            let url = departure.key.source.url
            onEvent(.evicted(url: url, byteCount: departure.cost, reason: departure.reason.rawValue))
        }
    }
}

/// What left the memory, kept until the pipeline's lock is free. Safe from any thread.
final class ImageDepartures: Sendable {
    typealias Departure = MemoryTier<ImageResultKey, MemoryPicture>.Departure

    private let list = Mutex<[Departure]>([])

    func add(_ departure: Departure) { list.withLock { $0.append(departure) } }

    /// Takes them all; `body` sees them one call at a time.
    @discardableResult func take(_ body: ([Departure]) -> Void) -> [Departure] {
        list.withLock { list in
            body(list)
            defer { list = [] }
            return list
        }
    }
}
