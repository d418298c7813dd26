import LarderEvents
public import LarderHTTPCache
import LarderMemory
public import LarderStorage
public import LarderTime
public import LarderTransport
import Synchronization

/// Loads pictures from memory (pixels), from disk (files) or from a server, and downsamples them while decoding.
///
/// Requests for the same bytes share a download, and requests for the same result share a decode. Work has the highest priority of its
/// requests and stops when the last of them is cancelled. Damaged bytes, received or stored, are never shown; they are fetched again.
/// Redirects are followed above the stored files: each response is kept and validated under its own URL. Safe from any thread: state
/// changes under one lock at the moment of the call, in the order of the calls.
///
/// ```swift
/// let pictures = ImagePipeline(ImagePipeline.Configuration(transport: SocketTransport()))
/// let request = ImageRequest(url: "http://127.0.0.1:8080/lake.jpg", target: ImageTarget(width: 400, height: 300))
/// let picture = try await pictures.image(for: request)
/// print(picture.width, picture.height)
/// ```
public final class ImagePipeline: Sendable {
    /// The settings of a pipeline.
    public struct Configuration: Sendable {
        /// Sends the requests.
        public var transport: any Transport
        /// The store for files. It must hold no other HTTP responses, because `removeAll` erases them. Nil stores no files.
        public var disk: DiskStore?
        /// The decoders of file formats.
        public var decoders: [any ImageDecoder] = [PNGDecoder(), JPEGDecoder()]
        /// The largest pictures that are decoded.
        public var limits = DecodedImage.Limits()
        /// The maximum number of bytes of decoded pixels in memory. Pictures that are small and were expensive to make are kept longest.
        public var memoryBytesMaximum = 96 << 20
        /// The maximum number of concurrent downloads.
        public var loadsMaximum = 6
        /// The maximum number of concurrent decodes.
        public var decodesMaximum = 2
        /// The maximum size of a file, in bytes.
        public var bytesMaximum = 32 << 20
        /// The options that RFC 9111 leaves open. By default a stored picture may be used for 30 days when the server fails, unless
        /// the response forbids it. A response without lifetime and without `Last-Modified` is fresh for a day.
        public var policy: HTTPCache.Policy = {
            var policy = HTTPCache.Policy()
            policy.staleIfError = .seconds(30 * 86_400)
            return policy
        }()
        /// The time for which a failure is remembered; a request within it fails at once. Extended by `Retry-After` up to five
        /// minutes.
        public var negativeLifetime: Duration = .seconds(5)
        /// The back-off between tries of a download. A try that brought bytes that can be kept resets it: `attemptsMaximum` and
        /// `elapsedMaximum` limit consecutive tries without such bytes. With `.never` a download is tried once. `Retry-After` (RFC 9110
        /// §10.2.3) is added; a server that asks for more than ten seconds gets no further try. `attemptsMaximum` is also
        /// the number of times that a `ListPrefetch` requests a visible picture that fails.
        public var retry = RetryPolicy(attemptsMaximum: 3, elapsedMaximum: .seconds(300), ceiling: .seconds(4))
        /// The maximum number of tries of a download in total.
        public var triesMaximum = 20
        /// Returns random numbers in 0..<1 for the jitter of the back-off.
        public var random: @Sendable () -> Double = { Double.random(in: 0..<1) }
        /// Delays a decode until the user is idle, as `IdleScheduler.submit` does; requests of priority `.high` or higher are
        /// decoded at once. The first function tells whether the decode is still wanted, the second starts it. Nil: no decode is
        /// delayed.
        public var submitWhenIdle: (@Sendable (@escaping @Sendable () -> Bool, @escaping @Sendable () -> Void) -> Void)?
        /// Called by `ListPrefetch.show` when the visible range has moved: the user scrolls, which an idle scheduler must know
        /// (`IdleScheduler.interacted`). It must not block.
        public var onScroll: (@Sendable () -> Void)?
        /// Used for freshness.
        public var clock: any WallClock = SystemWallClock()
        /// Used for durations, and to wait between tries.
        public var uptime: any MonotonicClock = SystemMonotonicClock()
        /// Called with every event, on any thread, while no lock is held. It must not block. Nil costs nothing.
        package var onEvent: (@Sendable (ImagePipeline.Event) -> Void)?

        /// Creates a configuration.
        public init(transport: any Transport, disk: DiskStore? = nil) {
            self.transport = transport
            self.disk = disk
        }
    }

    /// The settings of the pipeline.
    public let configuration: Configuration
    let memory: MemoryTier<ImageResultKey, MemoryPicture>
    /// Fetches, stores, validates and resumes the files.
    let cache: HTTPCache
    let state: Mutex<ImagePipelineState>
    /// The entries that left memory while the lock was held; reported after it is released.
    private let evicted = DepartureList<MemoryTier<ImageResultKey, MemoryPicture>.Departure>()
    let lists = ListPrefetch.Registry()

    /// Does no work until the first request.
    public init(_ configuration: Configuration) {
        var configuration = configuration
        configuration.policy.bodyBytesMaximum = max(configuration.policy.bodyBytesMaximum, configuration.bytesMaximum)
        configuration.policy.standardLifetime = .seconds(86_400)
        self.configuration = configuration
        state = Mutex(
            ImagePipelineState(
                loadsMaximum: max(1, configuration.loadsMaximum),
                decodesMaximum: max(1, configuration.decodesMaximum)
            )
        )
        let onEvent = configuration.onEvent
        let report: @Sendable (() -> ImagePipeline.Event) -> Void = { event in
            if let onEvent { onEvent(event()) }
        }
        memory = MemoryTier(
            limits: .init(cost: configuration.memoryBytesMaximum),
            onDeparture: onEvent == nil ? nil : evicted.add
        )
        let storage =
            configuration.disk.map { DiskHTTPCacheStorage($0, policy: configuration.policy) }
            ?? DiskHTTPCacheStorage(inMemory: 0, clock: configuration.clock)
        var caching = HTTPCache.Configuration(storage: storage, clock: configuration.clock)
        caching.policy = configuration.policy
        caching.onStorageFailure = { error in report { .storageFailed(DiskError(error)) } }
        cache = HTTPCache(configuration.transport, caching)
    }

    // MARK: Requests

    /// The picture, if its pixels are in memory and may be shown without a request to the server: while its response is fresh (RFC
    /// 9111 §4.2), and with `.onlyCached` also while it is stale, unless the response or the policy forbids that without a network (§4.2.4).
    /// Costs one look-up.
    public func cachedImage(for request: ImageRequest) -> DecodedImage? { cachedPicture(for: request)?.image }

    func cachedPicture(for request: ImageRequest) -> MemoryPicture? {
        guard !request.cache.contains(.skipMemoryRead),
            let picture = memory[ImageResultKey(request, target: request.target)], let freshness = picture.freshness,
            freshness.contains(configuration.clock.now) || picture.mayBeStale && request.cache.contains(.onlyCached)
        else { return nil }
        return picture
    }

    /// Loads a picture. If the calling task is cancelled it throws `.cancelled`, and the work stops unless other requests share it.
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

    /// Requests a picture; its stages and the picture itself can be awaited on the returned task. With the priority `.prefetch` it is loaded
    /// before it is needed, after all other requests; for the rows of a list see `ListPrefetch`.
    public func task(for request: ImageRequest) -> ImageTask { start(request, placeholder: true) }

    /// The stages of a picture: placeholder, previews, picture. Releasing the sequence cancels the request.
    public func stages(for request: ImageRequest) -> some AsyncSequence<ImageTask.Stage, ImageError> & Sendable {
        task(for: request).stages
    }

    // MARK: Limits and memory

    /// Starts no prefetching until `resumePrefetch()`. Other requests continue.
    public func pausePrefetch() { change { state in state.isPrefetchPaused = true } }

    /// Resumes prefetching.
    public func resumePrefetch() { change { state in state.isPrefetchPaused = false } }

    /// Scales the windows of all `ListPrefetch`es of the pipeline, from 0, which loads only what is visible, to 1: for slow or expensive
    /// networks. An `APIClient` calls it when the level of the network changes. The cost is that of `ListPrefetch.show` for each.
    public func setPrefetchShare(_ share: Double) {
        lists.setShare(share)
        for list in lists.all { list.refresh() }
    }

    /// Sets the maximum numbers of concurrent downloads and decodes, each at least 1. Running work is not stopped.
    public func setConcurrency(loads: Int, decodes: Int) {
        change { state in
            state.loadsMaximum = max(1, loads)
            state.decodesMaximum = max(1, decodes)
        }
    }

    /// Scales the target size of pictures that are decoded from now on, to save memory under pressure.
    ///
    /// - Parameter share: the factor for each side, from 0.1 to 1. Pictures of full size that are in memory are still returned.
    public func setQuality(_ share: Double) { change { state in state.quality = min(1, max(0.1, share)) } }

    /// Limits pixels to a share of `memoryBytesMaximum` until the next call, from 0 to 1.
    public func setMemoryShare(_ share: Double) {
        memory.setLimitsUnderPressure(.init(cost: Self.scaled(configuration.memoryBytesMaximum, by: share)))
        tellDepartures()
    }

    /// A share from 0 to 1; NaN counts as 1.
    static func bounded(_ share: Double) -> Double { share.isNaN ? 1 : min(max(share, 0), 1) }

    /// A share from 0 to 1 of a limit; NaN counts as 1, and no limit (`Int.max`) stays none unless the share is 0.
    static func scaled(_ limit: Int, by share: Double) -> Int {
        let share = bounded(share)
        if share == 0 { return 0 }
        return share == 1 || limit == .max ? limit : Int(Double(limit) * share)
    }

    /// Removes all pixels from memory. Files stay, and running work continues: see `cancelPending(below:)`.
    public func clearMemory() { trimMemory(toShare: 0) }

    /// Removes pixels until that share of them is left, from 0 to 1.
    public func trimMemory(toShare share: Double) {
        memory.trim(cost: Self.scaled(memory.cost, by: share))
        tellDepartures()
    }

    /// The bytes of pixels in memory.
    public var memoryCost: Int { memory.cost }

    /// The number of downloads and decodes, waiting and running.
    public var workload: (loads: Int, decodes: Int) {
        state.withLock { ($0.loads.count, $0.jobs.count - $0.loads.values.reduce(0) { $0 + $1.dependents.count }) }
    }

    /// Forgets remembered failures, so that the next request is sent, and tries visible pictures of a `ListPrefetch` again. Call it
    /// when the network is back.
    public func forgetFailures() {
        change { state in state.failures = [:] }
        for list in lists.all { list.forgiveFailures() }
    }

    /// Cancels all work below a priority; its requests fail with `.cancelled`.
    public func cancelPending(below priority: ImageRequest.Priority = .highest) { giveUp(below: priority) }

    /// Erases everything in memory, before it suspends, and on disk. Running downloads still deliver to their requests and are not stored.
    nonisolated(nonsending) public func removeAll() async {
        state.withLock { state in
            state.epoch += 1
            state.failures = [:]
            memory.removeAll()
        }
        await cache.removeAll()
        tellDepartures()
    }

    /// Whether nothing was erased since. Asked within each transaction: `removeAll` raises the number before it erases, so either the
    /// transaction writes nothing, or it is erased.
    func isCurrent(_ epoch: Int) -> Bool { state.withLock { $0.epoch == epoch } }

    // MARK: Events

    func report(_ event: () -> ImagePipeline.Event) {
        if let onEvent = configuration.onEvent { onEvent(event()) }
    }

    func tellDepartures() {
        guard let onEvent = configuration.onEvent else { return }
        for departure in evicted.take() {
            let url = departure.key.source.url
            onEvent(.evicted(url: url, byteCount: departure.cost, reason: departure.reason.rawValue))
        }
    }
}
