import LarderHTTP
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderEvents
@testable import LarderHTTPCache
@testable import LarderTransport

@Suite("HTTP cache: joined requests and the host gate", .oneMinute)
struct HTTPCacheAdmissionTests {
    @Test(arguments: [false, true])
    func `a person's request that joins one in the background is sent by itself if that is refused`(
        hasStale: Bool
    ) async throws {
        let terms: Fields = [.cacheControl: "max-age=1, stale-if-error=600"]
        let stage = CacheStage(Origin(reply(terms, "old")))
        if hasStale { _ = try await stage.get() }
        stage.clock.advance(by: .seconds(2))
        stage.origin.answer { request, _ throws(TransportError) in
            guard request.isUserInitiated else {
                throw TransportError(.unreachable, "a pause", retryAfter: .seconds(30))
            }
            return reply(terms, "new")
        }
        stage.origin.hold()
        let background = Task { try await stage.get() }
        await stage.origin.waitForRequests(hasStale ? 2 : 1)
        var request = TransportRequest(url: CacheStage.url)
        request.isUserInitiated = true
        let person = Task { [request] in try await stage.cache.response(for: request) }
        await rest()
        #expect(stage.cache.state.withLock { $0.flights.values.map(\.waiterCount).max() } == 2)
        stage.origin.release()
        #expect(try await person.value.text == "new")
        let old = try? await background.value
        #expect(old?.text == (hasStale ? "old" : nil))
    }
}
