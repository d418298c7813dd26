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
        /// How many bytes of broken-off downloads are kept, to go on from.
        public var partialBytesMaximum = 8 << 20
        /// How long a file is fresh whose server does not say.
        public var standardLifetime: Duration = .seconds(86_400)
        /// How long a failure is remembered; asking again within it fails at once.
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
    let memory: SegmentedMemoryTier<ImageResultKey, DecodedImage>
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
        var onDeparture: (@Sendable (MemoryTier<ImageResultKey, DecodedImage>.Departure) -> Void)?
        if onEvent != nil {
            onDeparture = { departure in
                departures.add(
                    .evicted(
                        url: departure.key.source.url,
                        byteCount: departure.cost,
                        reason: departure.reason.rawValue
                    )
                )
            }
        }
        let budgets = configuration.memory
        memory = SegmentedMemoryTier(
            .init(small: budgets.small, large: budgets.large, threshold: budgets.threshold),
            clock: configuration.uptime,
            onDeparture: onDeparture
        )
        loader = ImageLoader(
            transport: configuration.transport,
            store: ImageStore(configuration.disk, configuration.clock) { error in report { .storageFailed(error) } },
            decoders: configuration.decoders,
            retry: configuration.retry,
            clock: configuration.clock,
            uptime: configuration.uptime,
            standardLifetime: configuration.standardLifetime,
            bytesMaximum: configuration.bytesMaximum,
            report: report
        )
    }

    // MARK: Asking

    /// The picture, if its pixels are in memory. Costs a look-up.
    public func cachedImage(for request: ImageRequest) -> DecodedImage? {
        request.cache.contains(.skipMemoryRead) ? nil : memory[ImageResultKey(request, target: request.target)]
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
        loader.store.removeAll(epoch: epoch)
        tellDepartures()
    }

    // MARK: Telling

    func report(_ event: () -> ImageEvent) {
        if let onEvent = configuration.onEvent { onEvent(event()) }
    }

    func tellDepartures() {
        guard let onEvent = configuration.onEvent else { return }
        for event in evicted.take() { onEvent(event) }
    }
}

/// Events of what left the memory, kept until the pipeline's lock is free. Safe from any thread.
final class ImageDepartures: Sendable {
    private let events = Mutex<[ImageEvent]>([])

    func add(_ event: ImageEvent) { events.withLock { $0.append(event) } }

    func take() -> [ImageEvent] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }
}
