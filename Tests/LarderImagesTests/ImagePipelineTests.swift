import Foundation
import LarderEvents
import LarderHTTP
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderHTTPCache
@testable import LarderImages
@testable import LarderStorage
@testable import LarderTransport

/// A pipeline with its own store over a scripted server.
struct ImageSetting {
    let server: PictureServer
    let log = ImageLog()
    let clock = ManualClock()
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-img-\(UUID().uuidString)")
        .path
    let disk: DiskStore
    let pipeline: ImagePipeline

    init(pieceLength: Int = 100, _ change: (inout ImagePipeline.Configuration) -> Void = { _ in }) throws {
        server = PictureServer(pieceLength: pieceLength)
        disk = try DiskStore(DiskStore.Configuration(directory: directory, clock: clock))
        pipeline = ImagePipeline(Self.configuration(server, disk, clock, log, change))
    }

    private static func configuration(
        _ server: PictureServer,
        _ disk: DiskStore,
        _ clock: ManualClock,
        _ log: ImageLog,
        _ change: (inout ImagePipeline.Configuration) -> Void
    ) -> ImagePipeline.Configuration {
        var configuration = ImagePipeline.Configuration(transport: server, disk: disk)
        configuration.clock = clock
        configuration.uptime = NoWaitClock(clock)
        configuration.onEvent = { log.add($0) }
        change(&configuration)
        return configuration
    }

    /// Another pipeline over the same store, as after a restart.
    func restarted(_ change: (inout ImagePipeline.Configuration) -> Void = { _ in }) -> ImagePipeline {
        ImagePipeline(Self.configuration(server, disk, clock, log, change))
    }

    /// The number of stored responses for a picture's URL.
    func storedCount(_ request: ImageRequest) throws -> Int {
        try DiskHTTPCacheStorage(disk).entries(for: ImageSourceKey(request).identity).count
    }

    /// The parts of files on disk.
    func parts() throws -> [HTTPCacheEntry] {
        try disk.read { transaction in
            try transaction.queryKeys(named: "http")
                .flatMap { key in try transaction.query(key).flatMap { HTTPCacheEntry.decode($0.details) } ?? [] }
                .filter(\.isPart)
        }
    }

    func remove() { try? FileManager.default.removeItem(atPath: directory) }
}

@Suite("Image pipeline", .oneMinute)
struct ImagePipelineTests {
    private let url = "http://pictures/a.png"
    private let other = "http://pictures/b.png"
    private let picture = PNGBuilder.picture(width: 24, height: 16) { (UInt8($0 * 10), UInt8($1 * 10), 7) }

    private func code(_ body: () async throws -> DecodedImage) async -> ErrorCode<ImageError>? {
        do {
            _ = try await body()
            return nil
        } catch {
            return (error as? ImageError)?.code
        }
    }

    // MARK: Tiers

    @Test func `a picture comes from the network, then from memory, then from disk, also after a restart`() async throws
    {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture)
        let request = ImageRequest(url: url, target: ImageTarget(width: 12, height: 8))
        let first = try await setting.pipeline.image(for: request)
        #expect(first.width == 12 && first.height == 8 && first.sourceWidth == 24)
        #expect(setting.pipeline.cachedImage(for: request) == first)
        setting.pipeline.clearMemory()
        #expect(setting.pipeline.cachedImage(for: request) == nil && setting.pipeline.memoryCost == 0)
        #expect(try await setting.pipeline.image(for: request) == first)
        #expect(try await setting.restarted().image(for: request) == first)
        #expect(setting.server.requests.count == 1)
    }

    @Test func `a stale file is revalidated, and shown when the server fails`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture)
        let request = ImageRequest(url: url, cache: [.skipMemoryRead])
        let first = try await setting.pipeline.image(for: request)
        setting.clock.advance(by: .seconds(61))
        #expect(try await setting.pipeline.image(for: request) == first)
        #expect(setting.server.requests.last?.fields[.ifNoneMatch] == "\"v1\"")
        #expect(setting.log.count { if case .revalidated = $0 { true } else { false } } == 1)
        // The 304 renewed it.
        #expect(try await setting.pipeline.image(for: request) == first)
        #expect(setting.server.requests.count == 2)
        setting.clock.advance(by: .seconds(61))
        setting.server.isOffline = true
        #expect(try await setting.pipeline.image(for: request) == first)
        #expect(setting.log.count { if case .staleUsed = $0 { true } else { false } } == 1)
    }

    @Test func `a response that must not be stored is not stored, and onlyCached sends no request`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture, fields: [.cacheControl: "no-store"])
        _ = try await setting.pipeline.image(for: ImageRequest(url: url, cache: [.skipMemoryWrite]))
        #expect(
            await code { try await setting.pipeline.image(for: ImageRequest(url: url, cache: .onlyCached)) }
                == .notCached
        )
        #expect(setting.server.requests.count == 1)
    }

    @Test func `a file that must not be written is in memory only`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture)
        let request = ImageRequest(url: url, cache: .skipDiskWrite)
        let image = try await setting.pipeline.image(for: request)
        #expect(setting.pipeline.cachedImage(for: request) == image)
        let stored = ImageRequest(url: url, cache: [.skipMemoryRead, .onlyCached])
        #expect(await code { try await setting.pipeline.image(for: stored) } == .notCached)
    }

    @Test func `a small picture is never used for a large one`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture)
        let small = ImageRequest(url: url, target: ImageTarget(width: 3, height: 2))
        _ = try await setting.pipeline.image(for: small)
        let full = try await setting.pipeline.image(for: ImageRequest(url: url))
        #expect(full.width == 24 && setting.server.requests.count == 1)
        var filled = small
        filled.target?.mode = .fill
        #expect(setting.pipeline.cachedImage(for: filled) == nil)
        var authorized = small
        authorized.fields = [.authorization: "Bearer x"]
        #expect(setting.pipeline.cachedImage(for: authorized) == nil)
    }

    // MARK: Sharing

    @Test func `a thousand requests for one picture are one download and one decode`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        let gate = Gate()
        setting.server[url] = .init(bytes: picture, gate: gate)
        let request = ImageRequest(url: url)
        let tasks = (0..<1_000).map { _ in setting.pipeline.task(for: request) }
        gate.open()
        for task in tasks { #expect(try await task.image.width == 24) }
        #expect(setting.log.downloads == 1 && setting.log.decodes == 1)
    }

    @Test func `two sizes share the download and nothing else`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        let gate = Gate()
        setting.server[url] = .init(bytes: picture, gate: gate)
        let small = setting.pipeline.task(for: ImageRequest(url: url, target: ImageTarget(width: 6, height: 6)))
        let large = setting.pipeline.task(for: ImageRequest(url: url))
        gate.open()
        #expect(try await small.image.width == 6)
        #expect(try await large.image.width == 24)
        #expect(setting.log.downloads == 1 && setting.log.decodes == 2)
    }

    @Test func `work stops when the last request is cancelled, and not before`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        let gate = Gate()
        setting.server[url] = .init(bytes: picture, gate: gate)
        let request = ImageRequest(url: url)
        let first = setting.pipeline.task(for: request)
        let second = setting.pipeline.task(for: request)
        await setting.log.waitForDownloads(1)
        first.cancel()
        #expect(await code { try await first.image } == .cancelled)
        #expect(setting.log.cancelled == 0)
        second.cancel()
        #expect(setting.log.cancelled == 1 && setting.pipeline.workload == (0, 0))
        // A cancellation is not remembered as a failure.
        setting.server[url]?.gate = nil
        #expect(try await setting.pipeline.image(for: request).width == 24)
    }

    @Test func `cancelling the awaiting task stops the work, and so does releasing the image task`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture, gate: Gate())
        let awaiting = Task { try await setting.pipeline.image(for: ImageRequest(url: url)) }
        await setting.log.waitForDownloads(1)
        awaiting.cancel()
        #expect(await code { try await awaiting.value } == .cancelled)
        #expect(setting.log.cancelled == 1)
        do {
            let token = setting.pipeline.task(for: ImageRequest(url: url))
            #expect(setting.pipeline.workload.loads == 1)
            withExtendedLifetime(token) {}
        }
        #expect(setting.log.cancelled == 2 && setting.pipeline.workload == (0, 0))
    }

    @Test func `a cancelled request gets no picture, even if it arrives at that moment`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture)
        for _ in 0..<50 {
            let task = setting.pipeline.task(for: ImageRequest(url: url, cache: .skipMemoryRead))
            task.cancel()
            #expect(await code { try await task.image } == .cancelled)
        }
        #expect(setting.pipeline.workload == (0, 0))
    }

    // MARK: Order

    @Test func `waiting work has the highest priority of its requests at the time it starts`()
        async throws
    {
        let setting = try ImageSetting { configuration in
            configuration.loadsMaximum = 1
            configuration.disk = nil
        }
        defer { setting.remove() }
        let gate = Gate()
        let names = ["busy", "prefetch", "low", "normal", "raised", "lowered", "left"]
        let urls = Dictionary(uniqueKeysWithValues: names.map { ($0, "http://pictures/\($0)") })
        for url in urls.values { setting.server[url] = .init(bytes: picture) }
        func request(_ name: String, _ priority: ImageRequest.Priority) throws -> ImageRequest {
            ImageRequest(url: try #require(urls[name]), priority: priority)
        }
        setting.server[try #require(urls["busy"])]?.gate = gate
        var tasks = [setting.pipeline.task(for: try request("busy", .low))]
        await setting.log.waitForDownloads(1)
        let prefetch = setting.pipeline.task(for: try request("prefetch", .prefetch))
        tasks.append(setting.pipeline.task(for: try request("low", .low)))
        let lowered = setting.pipeline.task(for: try request("lowered", .highest))
        let rest = setting.pipeline.task(for: try request("lowered", .low))
        tasks.append(setting.pipeline.task(for: try request("normal", .normal)))
        let raised = setting.pipeline.task(for: try request("raised", .prefetch))
        let left = setting.pipeline.task(for: try request("left", .prefetch))
        tasks.append(setting.pipeline.task(for: try request("left", .low)))
        // Further requests for the same picture raise its priority, and it falls when they leave.
        let soon = setting.pipeline.task(for: try request("raised", .low))
        tasks.append(setting.pipeline.task(for: try request("raised", .highest)))
        lowered.cancel()
        left.cancel()
        gate.open()
        for task in tasks + [raised, soon, rest, prefetch] { _ = try await task.image }
        let order = setting.server.requests.map { $0.url.dropFirst("http://pictures/".count) }
        #expect(order == ["busy", "raised", "normal", "low", "lowered", "left", "prefetch"])
    }

    @Test func `prefetching can be paused, and a request joins it`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture)
        setting.server[other] = .init(bytes: picture)
        setting.pipeline.pausePrefetch()
        let prefetch = [url, other].map { setting.pipeline.task(for: ImageRequest(url: $0, priority: .prefetch)) }
        #expect(setting.server.requests.isEmpty)
        _ = try await setting.pipeline.image(for: ImageRequest(url: url))
        #expect(setting.log.downloads == 1)
        #expect(setting.log.count { if case .mergedDecode = $0 { true } else { false } } == 1)
        setting.pipeline.resumePrefetch()
        for task in prefetch { _ = try await task.image }
        #expect(setting.log.downloads == 2)
    }

    @Test func `pending work can be cancelled, and every request gets an error`() async throws {
        let setting = try ImageSetting { $0.loadsMaximum = 1 }
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture, gate: Gate())
        let first = setting.pipeline.task(for: ImageRequest(url: url))
        let second = setting.pipeline.task(for: ImageRequest(url: other))
        setting.pipeline.cancelPending()
        #expect(await code { try await first.image } == .cancelled)
        #expect(await code { try await second.image } == .cancelled)
        #expect(setting.pipeline.workload == (0, 0))
    }

    @Test func `no more downloads run at once than are allowed`() async throws {
        let setting = try ImageSetting { $0.loadsMaximum = 3 }
        defer { setting.remove() }
        let gate = Gate()
        for index in 0..<10 { setting.server["u\(index)"] = .init(bytes: picture, gate: gate) }
        let tasks = (0..<10).map { setting.pipeline.task(for: ImageRequest(url: "u\($0)")) }
        await setting.log.waitForDownloads(3)
        #expect(setting.log.downloads == 3)
        setting.pipeline.setConcurrency(loads: 5, decodes: 1)
        await setting.log.waitForDownloads(5)
        #expect(setting.log.downloads == 5)
        gate.open()
        for task in tasks { _ = try await task.image }
    }

    @Test func `prefetched pictures are kept by the memory budget and not by their list`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        setting.server[url] = .init(bytes: picture)
        let waiter = ImageWaiter(keepsPictures: false)
        waiter.show(.image(DecodedImage(width: 1, height: 1, pixels: [1, 2, 3, 4]), from: .network))
        #expect(try await waiter.stage(after: 0).get() == nil)
        // Throws the failure, once it has ended.
        _ = try await waiter.stage(after: .max).get()
        let task = setting.pipeline.start(ImageRequest(url: url), placeholder: false, keepsPicture: false)
        _ = try await task.waiter.stage(after: .max).get()
        #expect(setting.pipeline.cachedImage(for: ImageRequest(url: url)) != nil)
    }

    @Test func `a request gets a result even if nothing else holds the pipeline`() async throws {
        let server = PictureServer()
        let gate = Gate()
        server[url] = .init(bytes: picture, gate: gate)
        let task = ImagePipeline(ImagePipeline.Configuration(transport: server)).task(for: ImageRequest(url: url))
        gate.open()
        #expect(try await task.image.width == 24)
    }

    @Test func `on a memory warning memory falls and stays low, because work stops too`() async throws {
        let setting = try ImageSetting { $0.loadsMaximum = 2 }
        defer { setting.remove() }
        let gate = Gate()
        for index in 0..<20 { setting.server["u\(index)"] = .init(bytes: picture, gate: index < 4 ? nil : gate) }
        for index in 0..<4 { _ = try await setting.pipeline.image(for: ImageRequest(url: "u\(index)")) }
        let seen = setting.pipeline.task(for: ImageRequest(url: "u4", priority: .high))
        let others = (5..<12).map { setting.pipeline.task(for: ImageRequest(url: "u\($0)")) }
        let prefetch = (12..<20).map { setting.pipeline.task(for: ImageRequest(url: "u\($0)", priority: .prefetch)) }
        await setting.log.waitForDownloads(6)
        #expect(setting.pipeline.memoryCost == 4 * 24 * 16 * 4)
        setting.pipeline.pausePrefetch()
        setting.pipeline.setConcurrency(loads: 1, decodes: 1)
        setting.pipeline.cancelPending(below: .high)
        setting.pipeline.clearMemory()
        gate.open()
        #expect(try await seen.image.width == 24)
        for task in others + prefetch { #expect(await code { try await task.image } == .cancelled) }
        // Visible pictures are in memory, and no others.
        #expect(setting.pipeline.memoryCost == 24 * 16 * 4 && setting.log.decodes == 5)
    }

    // MARK: Erasing

    @Test func `a download that runs during removeAll is not stored`() async throws {
        let setting = try ImageSetting()
        defer { setting.remove() }
        let gate = Gate()
        setting.server[url] = .init(bytes: picture, bodyGate: gate)
        let request = ImageRequest(url: url)
        let task = setting.pipeline.task(for: request)
        await setting.log.waitForDownloads(1)
        await setting.pipeline.removeAll()
        gate.open()
        #expect(try await task.image.width == 24)
        #expect(setting.pipeline.cachedImage(for: request) == nil)
        #expect(try setting.storedCount(request) == 0)
        // A later request downloads it again.
        _ = try await setting.pipeline.image(for: request)
        #expect(setting.log.downloads == 2)
        #expect(try setting.storedCount(request) == 1)
    }

    // MARK: Storm

    @Test func `a storm of requests, cancellations and changes ends with nothing left behind`() async throws {
        let seed: UInt64 = 41
        let setting = try ImageSetting()
        defer { setting.remove() }
        for index in 0..<12 { setting.server["u\(index)"] = .init(bytes: picture, breaks: [500]) }
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                group.addTask {
                    var random = SeededGenerator(seed: seed + UInt64(worker))
                    var tasks: [ImageTask] = []
                    for _ in 0..<150 {
                        switch random.uniform(in: 0..<8) {
                        case 0...3:
                            let request = ImageRequest(
                                url: "u\(random.uniform(in: 0..<12))",
                                target: ImageTarget(width: random.uniform(in: 1..<4) * 8, height: 30),
                                cache: random.uniform(in: 0..<2) == 0 ? [] : .skipMemoryRead
                            )
                            tasks.append(setting.pipeline.task(for: request))
                        case 4 where !tasks.isEmpty: tasks.remove(at: random.uniform(in: 0..<tasks.count)).cancel()
                        case 5 where !tasks.isEmpty:
                            var request = tasks[random.uniform(in: 0..<tasks.count)].request
                            request.priority = .high
                            tasks.append(setting.pipeline.task(for: request))
                        case 6: setting.pipeline.trimMemory(toShare: 0.5)
                        default:
                            if let task = tasks.popLast() { _ = try? await task.image }
                        }
                    }
                    for task in tasks { _ = try? await task.image }
                }
            }
        }
        #expect(setting.pipeline.workload == (0, 0), "seed \(seed)")
    }
}
