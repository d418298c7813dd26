import LarderEvents
import LarderResources
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Cache: reasons of requests", .oneMinute)
struct RequestReasonTests {
    private let scene = CacheScene()

    @Test func `a request knows what needs it, why, and by which policy`() async throws {
        let cache = try scene.cache()
        let reasons = Mutex<[RequestReason?]>([])
        let word = Resource<String>("word", freshness: .timeToLive(.seconds(60))) { _ in
            reasons.withLock { $0.append(RequestReason.current) }
            return .value("a")
        }
        _ = try await cache.value(word)
        scene.clock.advance(by: .seconds(60))
        _ = try await cache.value(word, .networkFirst(timeout: nil))
        _ = try await cache.refresh(word)
        scene.clock.advance(by: .seconds(1))
        _ = try await cache.requireValidated(word, within: .zero)
        let found = reasons.withLock { $0.map { "\($0.map { $0.description } ?? "none")" } }
        #expect(
            found == [
                "word: missing, policy cacheFirst", "word: stale (expired), policy networkFirst",
                "word: a refresh, policy cacheFirst", "word: a gate, policy cacheFirst",
            ]
        )
        #expect(RequestReason.current == nil)
    }
}
