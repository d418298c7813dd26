import Larder
import LarderHTTP
import LarderTime
import Synchronization
import TestSupport
import Testing

@Suite("HTTP cache: at its edges", .oneMinute)
struct HTTPCacheLimitsTests {
    @Test func `a response that expires in the year 9999 is fresh`() async throws {
        let stage = CacheStage(Origin(reply([.expires: "Fri, 31 Dec 9999 23:59:59 GMT"])))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(10 * 365 * 86_400))
        #expect(try await stage.get().source == .hit)
    }

    @Test func `a 304 that makes a response match nothing any more removes it`() async throws {
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=60", .etag: "\"1\""])))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(60))
        stage.origin.answer { _, _ in reply([.etag: "\"1\"", .vary: "*"], "", status: 304) }
        #expect(try await stage.get().source == .revalidated)
        stage.origin.answer { _, _ in reply([.cacheControl: "max-age=60"], "new") }
        #expect(try await stage.get().text == "new")
        #expect(stage.origin.requests.last?.fields[.ifNoneMatch] == nil)
    }

    @Test func `rules reach the streamed replies to changes too`() async throws {
        var rule = HTTPCacheRule(methods: [.post])
        rule.settingFields = [.location: "/b"]
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=60"]))) { $0.rules = [rule] }
        _ = try await stage.get(url: "http://origin.test/b")
        let request = TransportRequest(method: .post, url: CacheStage.url)
        #expect(try await stage.cache.open(request).fields[.location] == "/b")
        // What the rewritten field names is invalid now.
        #expect(try await stage.get(url: "http://origin.test/b").source == .network)
    }

    @Test func `changes of a layered storage do not fall into each other`() async {
        let watch = Watch()
        let layered = LayeredHTTPCacheStorage(
            Watched(MemoryHTTPCacheStorage(), watch, isLasting: false),
            over: Watched(MemoryHTTPCacheStorage(), watch, isLasting: true)
        )
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<500 {
                        do { try layered.update("key", body: nil) { _ in } } catch { watch.note(overlap: true) }
                    }
                }
            }
        }
        #expect(watch.overlaps == 0)
    }
}

/// Sees when a change begins in the lasting layer while another has not ended in the fast one.
private final class Watch: Sendable {
    private struct State {
        var changing = 0
        var overlaps = 0
    }

    private let state = Mutex(State())

    var overlaps: Int { state.withLock { $0.overlaps } }

    func note(overlap: Bool) { state.withLock { $0.overlaps += overlap ? 1 : 0 } }

    func begin() {
        state.withLock { state in
            state.changing += 1
            if state.changing > 1 { state.overlaps += 1 }
        }
    }

    func end() { state.withLock { $0.changing -= 1 } }
}

private struct Watched: HTTPCacheStorage {
    let storage: MemoryHTTPCacheStorage
    let watch: Watch
    let isLasting: Bool

    init(_ storage: MemoryHTTPCacheStorage, _ watch: Watch, isLasting: Bool) {
        self.storage = storage
        self.watch = watch
        self.isLasting = isLasting
    }

    func entries(for key: String) throws -> [HTTPCacheEntry] { storage.entries(for: key) }

    func body(of entry: HTTPCacheEntry, for key: String) throws -> [UInt8]? { storage.body(of: entry, for: key) }

    func update(_ key: String, body: [UInt8]?, _ change: @Sendable (inout [HTTPCacheEntry]) -> Void) throws {
        if isLasting { watch.begin() }
        storage.update(key, body: body, change)
        if !isLasting { watch.end() }
    }

    func keys() throws -> [String] { storage.keys() }
    func removeAll() throws { storage.removeAll() }
}
