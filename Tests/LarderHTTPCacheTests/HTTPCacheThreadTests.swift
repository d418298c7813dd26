import LarderEvents
import LarderHTTP
import LarderHTTPCache
import LarderTime
import LarderTransport
import Synchronization
import TestSupport
import Testing

@Suite("HTTP cache: where the disk is used", .oneMinute)
struct HTTPCacheThreadTests {
    @Test func `a storage that may block is called on threads for the disk alone`() async throws {
        let storage = ThreadStorage()
        let terms: Fields = [.cacheControl: "max-age=60, stale-if-error=600", .etag: "\"1\""]
        let stage = CacheStage(Origin(reply(terms)), storage: storage)
        _ = try await stage.get()
        #expect(try await stage.get().source == .hit)
        stage.clock.advance(by: .seconds(100))
        stage.origin.answer { _, _ throws(TransportError) in throw TransportError(.unreachable, "away") }
        #expect(try await stage.get().source == .stale(.transportFailed(.unreachable)))
        stage.origin.answer { _, _ in reply(terms, "", status: 304) }
        #expect(try await stage.get().source == .revalidated)
        stage.origin.answer { _, _ in reply(terms) }
        _ = try await stage.get(method: .post)
        let stream = try await stage.cache.open(TransportRequest(url: CacheStage.url))
        for try await _ in stream.body {}
        #expect(try await stage.get().source == .hit)
        stage.origin.answer { _, _ in reply([.cacheControl: "no-store"]) }
        stage.clock.advance(by: .seconds(100))
        for try await _ in try await stage.cache.open(TransportRequest(url: CacheStage.url)).body {}
        stage.origin.answer { _, _ throws(TransportError) in throw TransportError(.timedOut, "late") }
        await #expect(throws: TransportError.self) { try await stage.get(method: .put) }
        await stage.cache.invalidate(url: CacheStage.url)
        await stage.cache.remove(url: CacheStage.url)
        await stage.cache.removeAll()
        #expect(storage.calls.withLock { $0 } > 15)
        #expect(storage.strays.withLock { $0 } == [])
    }
}

/// Records the calls that come on other threads than those for the disk.
private final class ThreadStorage: HTTPCacheStorage {
    private let storage = DiskHTTPCacheStorage(inMemory: 16 << 20)
    let calls = Mutex(0)
    let strays = Mutex<[String]>([])

    private func note(_ call: String) {
        calls.withLock { $0 += 1 }
        if !DiskExecutor.isCurrentThread { strays.withLock { $0.append(call) } }
    }

    func entries(for key: String) throws -> [HTTPCacheEntry] {
        note("entries")
        return try storage.entries(for: key)
    }

    func body(of entry: HTTPCacheEntry, for key: String) throws -> [UInt8]? {
        note("body")
        return try storage.body(of: entry, for: key)
    }

    func update(_ key: String, body: [UInt8]?, _ change: @Sendable (inout [HTTPCacheEntry]) -> Void) throws {
        note("update")
        try storage.update(key, body: body, change)
    }

    func removeAll() throws {
        note("removeAll")
        try storage.removeAll()
    }
}
