import LarderHTTP
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderEvents
@testable import LarderHTTPCache
@testable import LarderTransport

@Suite("HTTP cache: requests that share an exchange", .oneMinute)
struct HTTPCacheSharingTests {
    private let fresh: Fields = [.cacheControl: "max-age=60"]

    @Test func `a hundred equal requests are one exchange`() async throws {
        let stage = CacheStage(Origin(reply(fresh)))
        stage.origin.hold()
        try await withThrowingTaskGroup(of: HTTPCache.Response.self) { group in
            for _ in 0..<100 { group.addTask { try await stage.get() } }
            await stage.origin.waitForRequests(1)
            // Those that come later find the flight or the stored response; none goes out again.
            stage.origin.release()
            var texts: Set<String> = []
            for try await response in group { texts.insert(response.text) }
            #expect(texts == ["content"])
        }
        #expect(stage.origin.count == 1)
    }

    @Test func `an exchange continues until its last request is cancelled`() async throws {
        let stage = CacheStage(Origin(reply(fresh)))
        stage.origin.hold()
        let first = Task { try await stage.get() }
        await stage.origin.waitForRequests(1)
        let second = Task { try await stage.get() }
        await expectWaiting(stage, 2)
        first.cancel()
        await #expect(throws: TransportError.self) { try await first.value }
        #expect(stage.origin.cancelled == 0)
        second.cancel()
        await #expect(throws: TransportError.self) { try await second.value }
        stage.origin.release()
        await stage.origin.waitForCancellation()
        // A request after that is a new exchange.
        #expect(try await stage.get().source == .network)
        #expect(stage.origin.count == 2 && stage.origin.cancelled == 1)
    }

    @Test func `a joined request gets the response although the first one was cancelled`() async throws {
        let stage = CacheStage(Origin(reply(fresh)))
        stage.origin.hold()
        let first = Task { try await stage.get() }
        await stage.origin.waitForRequests(1)
        let second = Task { try await stage.get() }
        await expectWaiting(stage, 2)
        first.cancel()
        await #expect(throws: TransportError.self) { try await first.value }
        stage.origin.release()
        let response = try await second.value
        #expect(response.text == "content")
        #expect(stage.origin.count == 1 && stage.origin.cancelled == 0)
    }

    @Test func `a request with stricter conditions starts its own exchange, whose response is kept`() async throws {
        let stage = CacheStage(
            Origin { _, number throws(TransportError) in reply([.cacheControl: "max-age=60"], "answer \(number)") }
        )
        stage.origin.hold()
        let plain = Task { try await stage.get() }
        await stage.origin.waitForRequests(1)
        let demanding = Task { try await stage.get([.cacheControl: "no-cache"]) }
        await stage.origin.waitForRequests(2)
        stage.clock.advance(by: .seconds(1))
        stage.origin.release(at: 1)
        #expect(try await demanding.value.text == "answer 1")
        // The slow old reply comes last and does not take its place.
        stage.origin.release()
        #expect(try await plain.value.text == "answer 0")
        let later = try await stage.get()
        #expect(later.source == .hit)
    }

    @Test func `a slow old reply does not take the place of a newer one`() async throws {
        let stage = CacheStage(
            Origin { _, number throws(TransportError) in reply([.cacheControl: "max-age=60"], "answer \(number)") }
        )
        stage.origin.hold()
        let old = Task { try await stage.get() }
        await stage.origin.waitForRequests(1)
        stage.clock.advance(by: .seconds(1))
        let new = Task { try await stage.get([.cacheControl: "no-cache"]) }
        await stage.origin.waitForRequests(2)
        stage.origin.release(at: 1)
        _ = try await new.value
        stage.origin.release()
        _ = try await old.value
        let stored = try await stage.get()
        #expect(stored.source == .hit && stored.text == "answer 1")
    }

    @Test func `a slow 304 does not bring back what a newer reply has replaced`() async throws {
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=1", .etag: "\"1\""], "old")))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(2))
        stage.origin.answer { [fresh] _, number in
            number == 1 ? reply([.etag: "\"1\"", .cacheControl: "max-age=60"], "", status: 304) : reply(fresh, "new")
        }
        stage.origin.hold()
        let slow = Task { try await stage.get() }
        await stage.origin.waitForRequests(2)
        stage.clock.advance(by: .seconds(1))
        let fast = Task { try await stage.get([.cacheControl: "no-cache"]) }
        await stage.origin.waitForRequests(3)
        stage.origin.release(at: 1)
        #expect(try await fast.value.text == "new")
        stage.origin.release()
        // What it confirms is gone, so it is asked again.
        #expect(try await slow.value.text == "new")
        let stored = try await stage.get()
        #expect(stored.source == .hit && stored.text == "new")
    }

    @Test func `requests that differ in any other field do not share`() async throws {
        let stage = CacheStage(Origin(reply(fresh)))
        stage.origin.hold()
        let tasks = ["a", "b"].map { who in Task { try await stage.get([.authorization: who]) } }
        await stage.origin.waitForRequests(2)
        stage.origin.release()
        for task in tasks { #expect(try await task.value.source == .network) }
    }

    @Test(
        arguments: [([.cacheControl: "no-store"], false), ([.vary: "*"], false), ([.vary: "Cookie"], true)]
            as [(Fields, Bool)]
    )
    func `what may not be stored is not shared`(terms: Fields, hidesCookies: Bool) async throws {
        let stage = CacheStage(
            Origin { _, number throws(TransportError) in reply(terms, "token \(number)") }
        ) { $0.policy.hidesCookies = hidesCookies }
        stage.origin.hold()
        let first = Task { try await stage.get().text }
        await stage.origin.waitForRequests(1)
        let second = Task { try await stage.get().text }
        await expectWaiting(stage, 2)
        stage.origin.release()
        let tokens = [try await first.value, try await second.value]
        #expect(Set(tokens).count == 2)
    }

    @Test(arguments: [true, false])
    func `a request that joined a stricter one gets its stored response instead of the failure`(
        isTimedOut: Bool
    ) async throws {
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=60, stale-if-error=600"])))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(61))
        stage.origin.answer { _, _ throws(TransportError) in
            if isTimedOut { throw TransportError(.timedOut, "slow") }
            return reply(Fields(), "sorry", status: 503)
        }
        stage.origin.hold()
        let strict = Task { try await stage.get([.cacheControl: "no-cache"]) }
        await stage.origin.waitForRequests(2)
        let plain = Task { try await stage.get() }
        await expectWaiting(stage, 2)
        stage.origin.release()
        if isTimedOut {
            await #expect(throws: TransportError.self) { try await strict.value }
        } else {
            #expect(try await strict.value.text == "sorry")
        }
        let response = try await plain.value
        #expect(response.text == "content")
        #expect(
            response.source == .stale(isTimedOut ? .transportFailed(.timedOut) : .serverFailed(Status(code: 503)))
        )
        #expect(stage.origin.count == 2)
    }

    @Test func `a failure reaches all joined requests and is not stored`() async throws {
        let stage = CacheStage(
            Origin { _, number throws(TransportError) in
                if number == 0 { throw TransportError(.unreachable, "down") }
                return reply()
            }
        )
        stage.origin.hold()
        let tasks = (0..<2).map { _ in Task { try await stage.get() } }
        await stage.origin.waitForRequests(1)
        await expectWaiting(stage, 2)
        stage.origin.release()
        for task in tasks { await #expect(throws: TransportError.self) { try await task.value } }
        #expect(try await stage.get().source == .network)
    }

    @Test func `one validation in the background serves all who read stale meanwhile`() async throws {
        let terms: Fields = [.cacheControl: "max-age=1, stale-while-revalidate=60", .etag: "\"1\""]
        let stage = CacheStage(Origin(reply(terms), reply(terms, "", status: 304)))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(2))
        stage.origin.hold()
        for _ in 0..<10 { #expect(try await stage.get().source == .stale(.revalidating)) }
        await stage.origin.waitForRequests(2)
        stage.origin.release()
        await stage.cache.finishBackgroundWork()
        #expect(stage.origin.count == 2)
        #expect(try await stage.get().source == .hit)
    }

    /// At rest, so many requests wait for one exchange.
    private func expectWaiting(_ stage: CacheStage, _ count: Int) async {
        func waiters() -> Int { stage.cache.state.withLock { $0.flights.values.map(\.waiterCount).max() ?? 0 } }
        await rest()
        #expect(waiters() == count)
    }
}
