import Larder
import LarderHTTP
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderImages

@Suite("Image pipeline, prefetching around the visible range", .oneMinute)
struct ListPrefetchTests {
    private static let picture = PNGBuilder.picture(width: 4, height: 4) { _, _ in (9, 8, 7) }

    @Sendable private static func url(_ row: Int) -> String { "http://pictures/\(row)" }

    @Sendable private static func request(_ row: Int) -> ImageRequest? {
        ImageRequest(url: url(row), target: ImageTarget(width: 10, height: 10))
    }

    /// A server with 40 pictures, one download at a time.
    private func setting(_ change: (inout ImagePipeline.Configuration) -> Void = { _ in }) throws -> ImageSetting {
        let setting = try ImageSetting { configuration in
            configuration.loadsMaximum = 1
            change(&configuration)
        }
        for row in 0..<40 { setting.server[Self.url(row)] = .init(bytes: Self.picture) }
        return setting
    }

    private func rows(_ setting: ImageSetting) -> [Int] {
        setting.server.requests.compactMap { Int($0.url.dropFirst("http://pictures/".count)) }
    }

    private func waitUntilIdle(_ setting: ImageSetting, delivered count: Int) async {
        await setting.log.wait { $0.count { if case .delivered = $0 { true } else { false } } >= count }
    }

    @Test func `visible pictures are loaded first, then those ahead, then those behind`() async throws {
        let setting = try setting()
        defer { setting.remove() }
        let prefetch = ImagePipeline.ListPrefetch(
            setting.pipeline,
            aheadMaximum: 3,
            behindMaximum: 2,
            bytesMaximum: 1 << 20,
            request: Self.request
        )
        prefetch.show(10..<12, of: 40)
        await waitUntilIdle(setting, delivered: 7)
        #expect(rows(setting) == [10, 11, 12, 13, 14, 9, 8])
        // Upwards, and not beyond the beginning.
        prefetch.show(1..<3, of: 40)
        await waitUntilIdle(setting, delivered: 12)
        #expect(rows(setting).dropFirst(7) == [1, 2, 0, 3, 4])
        withExtendedLifetime(prefetch) {}
    }

    @Test func `what becomes visible is raised and what has left is cancelled, item by item`() async throws {
        let setting = try setting()
        defer { setting.remove() }
        let gate = Gate()
        setting.server[Self.url(0)]?.gate = gate
        let prefetch = ImagePipeline.ListPrefetch(
            setting.pipeline,
            aheadMaximum: 4,
            behindMaximum: 0,
            bytesMaximum: 1 << 20,
            request: Self.request
        )
        prefetch.show(0..<2, of: 40)
        await setting.log.waitForDownloads(1)
        // Rows 3 and 4 become visible; 0, whose download runs, 1 and 2 have left.
        prefetch.show(3..<5, of: 40)
        #expect(setting.log.cancelled == 3)
        gate.open()
        await waitUntilIdle(setting, delivered: 6)
        #expect(rows(setting) == [0, 3, 4, 5, 6, 7, 8])
        #expect(setting.log.downloads == 7)
        withExtendedLifetime(prefetch) {}
    }

    @Test func `a download that has begun is finished if that is wanted`() async throws {
        let setting = try setting()
        defer { setting.remove() }
        let gate = Gate()
        setting.server[Self.url(0)]?.gate = gate
        let prefetch = ImagePipeline.ListPrefetch(
            setting.pipeline,
            aheadMaximum: 2,
            behindMaximum: 0,
            bytesMaximum: 1 << 20,
            finishesBegun: true,
            request: Self.request
        )
        prefetch.show(0..<1, of: 40)
        await setting.log.waitForDownloads(1)
        prefetch.show(20..<21, of: 40)
        #expect(setting.log.cancelled == 2)
        gate.open()
        await waitUntilIdle(setting, delivered: 4)
        #expect(rows(setting) == [0, 20, 21, 22])
        #expect(Self.request(0).flatMap { setting.pipeline.cachedImage(for: $0) } != nil)
        withExtendedLifetime(prefetch) {}
    }

    @Test func `the window is limited by bytes and by the share for the network`() async throws {
        let setting = try setting()
        defer { setting.remove() }
        // 400 bytes each: three fit.
        let prefetch = ImagePipeline.ListPrefetch(
            setting.pipeline,
            aheadMaximum: 10,
            behindMaximum: 0,
            bytesMaximum: 1_300,
            request: Self.request
        )
        prefetch.show(0..<1, of: 40)
        await waitUntilIdle(setting, delivered: 4)
        setting.pipeline.setPrefetchShare(0)
        prefetch.show(10..<12, of: 40)
        await waitUntilIdle(setting, delivered: 6)
        setting.pipeline.setPrefetchShare(0.5)
        await waitUntilIdle(setting, delivered: 7)
        #expect(rows(setting) == [0, 1, 2, 3, 10, 11, 12])
        #expect(setting.pipeline.workload == (loads: 0, decodes: 0))
        withExtendedLifetime(prefetch) {}
    }

    @Test func `a window without a limit of bytes is limited by its counts`() async throws {
        let setting = try setting()
        defer { setting.remove() }
        let prefetch = ImagePipeline.ListPrefetch(
            setting.pipeline,
            aheadMaximum: 3,
            behindMaximum: 0,
            bytesMaximum: .max,
            request: Self.request
        )
        prefetch.show(0..<1, of: 40)
        await waitUntilIdle(setting, delivered: 4)
        #expect(rows(setting) == [0, 1, 2, 3])
        withExtendedLifetime(prefetch) {}
    }

    @Test func `a begun download of a picture in lower quality is finished, also after everything was erased`()
        async throws
    {
        let setting = try setting()
        defer { setting.remove() }
        setting.pipeline.setQuality(0.5)
        let gate = Gate()
        setting.server[Self.url(0)]?.gate = gate
        let prefetch = ImagePipeline.ListPrefetch(
            setting.pipeline,
            aheadMaximum: 0,
            behindMaximum: 0,
            bytesMaximum: 1 << 20,
            finishesBegun: true,
            request: Self.request
        )
        prefetch.show(0..<1, of: 40)
        await setting.log.waitForDownloads(1)
        await setting.pipeline.removeAll()
        prefetch.show(20..<21, of: 40)
        #expect(setting.log.cancelled == 0)
        gate.open()
        await waitUntilIdle(setting, delivered: 2)
        #expect(rows(setting) == [0, 20])
        withExtendedLifetime(prefetch) {}
    }

    @Test func `an item whose size, fields or options have changed is requested again`() async throws {
        let setting = try setting()
        defer { setting.remove() }
        let request = Mutex(ImageRequest(url: Self.url(0), target: ImageTarget(width: 10, height: 10)))
        let prefetch = ImagePipeline.ListPrefetch(
            setting.pipeline,
            aheadMaximum: 0,
            behindMaximum: 0,
            bytesMaximum: 1 << 20
        ) { _ in
            request.withLock { $0 }
        }
        prefetch.show(0..<1, of: 1)
        await waitUntilIdle(setting, delivered: 1)
        request.withLock { $0.target = ImageTarget(width: 2, height: 2) }
        prefetch.show(0..<1, of: 1)
        await waitUntilIdle(setting, delivered: 2)
        #expect(setting.pipeline.cachedImage(for: request.withLock { $0 })?.width == 2)
        request.withLock { $0.fields.set(.acceptLanguage, "es") }
        prefetch.show(0..<1, of: 1)
        await waitUntilIdle(setting, delivered: 3)
        request.withLock { $0.cache = .skipMemoryRead }
        prefetch.show(0..<1, of: 1)
        await waitUntilIdle(setting, delivered: 4)
        // What has not changed is not requested again.
        prefetch.show(0..<1, of: 1)
        #expect(setting.log.count { if case .hit(_, .memory, _) = $0 { true } else { false } } == 0)
        #expect(setting.pipeline.workload == (loads: 0, decodes: 0))
        withExtendedLifetime(prefetch) {}
    }

    @Test func `a range that moves is scrolling, which the client's idle scheduler learns`() async throws {
        let moves = Mutex(0)
        let setting = try setting { $0.onScroll = { moves.withLock { $0 += 1 } } }
        defer { setting.remove() }
        let prefetch = ImagePipeline.ListPrefetch(setting.pipeline, request: Self.request)
        // The first range and one that only grows are not.
        prefetch.show(0..<2, of: 40)
        prefetch.show(0..<3, of: 40)
        prefetch.show(0..<3, of: 41)
        #expect(moves.withLock { $0 } == 0)
        prefetch.show(1..<4, of: 41)
        prefetch.show(0..<3, of: 41)
        #expect(moves.withLock { $0 } == 2)
        prefetch.cancel()

        let scene = CacheScene()
        var configuration = APIClient.Configuration(transport: setting.server)
        configuration.cache = scene.configuration(inMemory: true)
        configuration.services = .none
        configuration.services.idle = .own
        let client = try await APIClient(server: "http://h", account: "a", directory: scene.path, configuration)
        let list = ImagePipeline.ListPrefetch(client.images) { _ in nil }
        list.show(0..<2, of: 9)
        #expect(client.idle?.isIdle == true)
        list.show(2..<4, of: 9)
        #expect(client.idle?.isIdle == false)
        client.close()
    }

    @Test(arguments: [false, true])
    func `a cancelled or released one stops loading`(_ isReleased: Bool) async throws {
        let setting = try setting()
        defer { setting.remove() }
        setting.server[Self.url(0)]?.gate = Gate()
        var prefetch: ImagePipeline.ListPrefetch? = ImagePipeline.ListPrefetch(
            setting.pipeline,
            aheadMaximum: 4,
            behindMaximum: 0,
            bytesMaximum: 1 << 20,
            request: Self.request
        )
        prefetch?.show(0..<2, of: 40)
        await setting.log.waitForDownloads(1)
        if isReleased {
            prefetch = nil
        } else {
            prefetch?.cancel()
            prefetch?.show(5..<8, of: 40)
        }
        #expect(setting.log.cancelled == 6 && setting.pipeline.workload == (loads: 0, decodes: 0))
        prefetch = nil
    }
}
