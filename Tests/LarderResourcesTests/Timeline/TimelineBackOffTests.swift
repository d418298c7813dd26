import LarderResources
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@Suite("Timelines: back-off of pages", .oneMinute)
struct TimelineBackOffTests {
    private let scene = CacheScene()
    private let source = PageSource()

    private func loaded() async throws -> (LarderCache, Timeline<Note>) {
        let cache = try scene.cache()
        let timeline = cache.timeline(source.resource())
        source.prepare([9, 8, 7], next: "after 7")
        try await timeline.refresh()
        return (cache, timeline)
    }

    private func busy(_ wait: Duration? = nil) -> LarderError {
        LarderError(.rejected, "busy", status: 503, retryAfter: wait)
    }

    @Test func `after each failure an older page waits twice as long, and nothing is sent before`() async throws {
        let (cache, timeline) = try await loaded()
        defer { cache.close() }
        for count in 1...4 {
            source.script.prepare(failure: busy())
            let first = await #expect(throws: LarderError.self) { try await timeline.loadOlder() }
            #expect(first?.description == "busy" && source.requests.count == 1 + count)
            // Half of the longest wait is drawn.
            let wait: Duration = .milliseconds((1_000 << (count - 1)) / 2)
            scene.clock.advance(by: wait - .milliseconds(1))
            let second = await #expect(throws: LarderError.self) { try await timeline.loadOlder() }
            #expect(second?.status == 503 && second?.retryAfter == .milliseconds(1))
            #expect(source.requests.count == 1 + count)
            scene.clock.advance(by: .milliseconds(1))
        }
        source.prepare([6, 5, 4], next: "after 4")
        #expect(try await timeline.loadOlder() == .more)
        // A success ends it.
        source.script.prepare(failure: busy())
        _ = await #expect(throws: LarderError.self) { try await timeline.loadOlder() }
        scene.clock.advance(by: .milliseconds(500))
        source.prepare([3])
        #expect(try await timeline.loadOlder() == .finished)
    }

    @Test
    func `a person's attempt is made at once, and a return of the network ends what the server has not asked for`()
        async throws
    {
        let (cache, timeline) = try await loaded()
        source.script.prepare(failure: LarderError(.offline, "gone"))
        _ = await #expect(throws: LarderError.self) { try await timeline.loadOlder() }
        cache.networkReturned()
        source.script.prepare(failure: busy(.seconds(30)))
        _ = await #expect(throws: LarderError.self) { try await timeline.loadOlder() }
        #expect(source.requests.count == 3)
        cache.networkReturned()
        let held = await #expect(throws: LarderError.self) { try await timeline.loadOlder() }
        #expect(held?.retryAfter == .seconds(30) && source.requests.count == 3)
        source.prepare([6, 5, 4], next: "after 4")
        #expect(try await timeline.loadOlder(isUserInitiated: true) == .more)
    }

    @Test func `a person's attempt that fails does not shorten the wait that the server has asked for`() async throws {
        let (cache, timeline) = try await loaded()
        defer { cache.close() }
        source.script.prepare(failure: busy(.seconds(30)))
        _ = await #expect(throws: LarderError.self) { try await timeline.loadOlder() }
        source.script.prepare(failure: busy())
        _ = await #expect(throws: LarderError.self) { try await timeline.loadOlder(isUserInitiated: true) }
        scene.clock.advance(by: .seconds(29))
        let held = await #expect(throws: LarderError.self) { try await timeline.loadOlder() }
        #expect((held?.retryAfter ?? .zero) >= .seconds(1) && source.requests.count == 3)
    }

    @Test func `a page that was cancelled is requested again at once`() async throws {
        let (cache, timeline) = try await loaded()
        defer { cache.close() }
        let loading = Task { try await timeline.loadOlder() }
        await source.script.waitForRequests(2)
        loading.cancel()
        _ = await #expect(throws: LarderError.self) { try await loading.value }
        source.prepare([6, 5, 4], next: "after 4")
        #expect(try await timeline.loadOlder() == .more)
    }
}
