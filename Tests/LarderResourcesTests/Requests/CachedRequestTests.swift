import Foundation
import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Cached requests", .oneMinute)
struct CachedRequestTests {
    struct Answer: Codable, Sendable, Equatable {
        var text: String
    }

    final class Counter: Sendable {
        let count = Mutex(0)

        func next() -> Answer { Answer(text: "\(count.withLock { $0 += 1; return $0 })") }
    }

    let scene = CacheScene()

    @Test(arguments: [true, false])
    func `an answer is used for a day and then the function is called again`(_ isInMemory: Bool) async throws {
        let cache = try scene.cache(inMemory: isInMemory)
        let counter = Counter()
        func ask(_ parameters: [String: String]) async throws -> String {
            try await cache.request("r", parameters) { counter.next() }.text
        }
        for parameters in [["b": "2", "a": "1"], ["a": "1", "b": "2"]] {
            #expect(try await ask(parameters) == "1")
        }
        scene.clock.advance(by: .seconds(86_399))
        #expect(try await ask(["a": "1", "b": "2"]) == "1")
        scene.clock.advance(by: .seconds(1))
        #expect(try await ask(["a": "1", "b": "2"]) == "2")
        #expect(try await ask(["a": "2", "b": "1"]) == "3")
    }

    static let policies: [String: ReadPolicy] = [
        "cacheOnly": .cacheOnly, "networkOnly": .networkOnly, "cacheFirst": .cacheFirst, "cacheAndLoad": .cacheAndLoad,
        "cacheNoLoad": .cacheNoLoad, "noCacheDoLoad": .noCacheDoLoad, "cacheElseLoad": .cacheElseLoad,
    ]
    /// The names that request caches often use.
    static let otherNames = [
        "cacheNoLoad": "cacheOnly", "noCacheDoLoad": "networkOnly", "cacheElseLoad": "cacheFirst",
    ]

    @Test(arguments: [true, false], policies.keys.sorted())
    func `each policy gives exactly its answers`(_ isInMemory: Bool, _ name: String) async throws {
        let cache = try scene.cache(inMemory: isInMemory)
        let policy = try #require(Self.policies[name])
        let name = Self.otherNames[name] ?? name
        let source = ScriptedSource<Answer>()
        let request = Resource<Answer>.request("r") {
            guard let value = try await source.fetch(FetchContext()).value else { throw Broken() }
            return value
        }
        func all() async throws -> [String] {
            let count = source.requests.count
            let seen = SequenceRecorder(cache.snapshots(request, policy))
            if await seen.wait(for: 1).first?.isFetching == true {
                await source.waitForRequests(count + 1)
                source.answer(count, .value(Answer(text: "new")))
                await seen.wait { $0.last?.isFetching == false }
            }
            var texts: [String] = []
            for snapshot in seen.elements {
                guard let value = snapshot.value else { continue }
                texts.append(value.text + (snapshot.freshness.isFresh ? "" : " outdated"))
            }
            return texts
        }
        #expect(try await all() == (name == "cacheOnly" ? [] : ["new"]))
        try await cache.put(Answer(text: "old"), for: request)
        let expected = [
            "cacheOnly": ["old"], "networkOnly": ["new"], "cacheFirst": ["old"], "cacheAndLoad": ["old", "new"],
        ]
        #expect(try await all() == expected[name])
        try await cache.put(Answer(text: "old"), for: request)
        scene.clock.advance(by: .seconds(100_000))
        let later = [
            "cacheOnly": ["old outdated"], "networkOnly": ["new"], "cacheFirst": ["new"],
            "cacheAndLoad": ["old outdated", "new"],
        ]
        #expect(try await all() == later[name])
    }

    @Test func `an expired answer is returned with the error if the function fails`() async throws {
        let cache = try scene.cache()
        let request = Resource<Answer>.request("r") { throw Broken() }
        try await cache.put(Answer(text: "old"), for: request)
        scene.clock.advance(by: .seconds(86_400))
        let snapshot = try await cache.snapshot(request)
        #expect(snapshot.value?.text == "old" && snapshot.freshness == .stale(.expired))
        #expect(snapshot.refreshError?.code == .fetchFailed)
    }

    @Test(arguments: [ReadPolicy.cacheFirst, .networkFirst(timeout: nil)])
    func `a call that returns the value alone does not return an expired one after a failure`(_ policy: ReadPolicy)
        async throws
    {
        let cache = try scene.cache()
        let isBroken = Mutex(false)
        func ask() async throws -> Int {
            try await cache.request("r", policy: policy) {
                if isBroken.withLock({ $0 }) { throw Broken() }
                return 1
            }
        }
        #expect(try await ask() == 1)
        isBroken.withLock { $0 = true }
        scene.clock.advance(by: .seconds(86_399))
        #expect(try await ask() == 1, "It is fresh, whatever became of the call.")
        scene.clock.advance(by: .seconds(100))
        let error = await #expect(throws: LarderError.self) { try await ask() }
        #expect(error?.code == .fetchFailed)
        // A reader that wants it sees that it is expired.
        let snapshot = try await cache.snapshot(Resource<Int>.request("r") { throw Broken() }, .cacheOnly)
        #expect(snapshot.value == 1 && snapshot.freshness == .stale(.expired))
        // After the back-off.
        scene.clock.advance(by: .seconds(100))
        scene.isOnline.withLock { $0 = false }
        let offline = await #expect(throws: LarderError.self) { try await ask() }
        #expect(offline?.code == .offline)
    }

    @Test func `the codec of a request encodes what is stored`() async throws {
        let codec = PayloadCodec<Int>(
            encode: { value in Array("number \(value)".utf8) },
            decode: { bytes in Int(String(decoding: bytes, as: UTF8.self).dropFirst(7)) ?? 0 }
        )
        for _ in 0..<2 {
            let cache = try scene.cache()
            #expect(try await cache.request("r", codec: codec) { 7 } == 7)
            let stored = try #require(try cache.disk?.entity(EntityKey(type: "=request r", id: "")))
            #expect(String(decoding: stored.payload, as: UTF8.self) == "number 7")
            cache.close()
        }
    }

    @Test func `no function is called while the network may not be used`() async throws {
        let cache = try scene.cache()
        scene.isOnline.withLock { $0 = false }
        let counter = Counter()
        let error = await #expect(throws: LarderError.self) { try await cache.request("r") { counter.next() } }
        #expect(error?.code == .offline && counter.count.withLock { $0 } == 0)
    }

    @Test(arguments: [ReadPolicy.cacheFirst, .networkOnly, .cacheAndLoad])
    func `calls for a key that is in flight wait for it`(_ policy: ReadPolicy) async throws {
        let cache = try scene.cache(inMemory: true)
        let source = ScriptedSource<Answer>()
        let load: @Sendable () async throws -> Answer = {
            guard let value = try await source.fetch(FetchContext()).value else { throw Broken() }
            return value
        }
        async let first = cache.request("r", policy: policy, load: load)
        await source.waitForRequests(1)
        let others = (0..<50).map { _ in Task { try await cache.request("r", policy: policy, load: load).text } }
        let different = Task { try await cache.request("other", policy: policy, load: load).text }
        await source.waitForRequests(2)
        await scene.joined(others.count)
        source.answer(1, .value(Answer(text: "other")))
        #expect(try await different.value == "other")
        source.answer(0, .value(Answer(text: "shared")))
        #expect(try await first.text == "shared")
        for other in others { #expect(try await other.value == "shared") }
        #expect(source.requests.count == 2)
    }

    @Test(arguments: [true, false], ["removed", "stored"])
    func `the answer of a call in flight does not replace a later change`(_ isInMemory: Bool, _ news: String)
        async throws
    {
        let cache = try scene.cache(inMemory: isInMemory)
        let source = ScriptedSource<Answer>()
        let request = Resource<Answer>.request("r") {
            guard let value = try await source.fetch(FetchContext()).value else { throw Broken() }
            return value
        }
        let first = Task { try? await cache.value(request).text }
        await source.waitForRequests(1)
        if news == "removed" {
            try await cache.remove(request)
        } else {
            try await cache.put(Answer(text: "by hand"), for: request)
        }
        source.answer(0, .value(Answer(text: "old")))
        _ = await first.value
        #expect(cache.stored(request)?.value?.text == (news == "stored" ? "by hand" : nil))
        try await cache.remove(request)
        let second = Task { try await cache.value(request).text }
        await source.waitForRequests(2)
        source.answer(1, .value(Answer(text: "new")))
        #expect(try await second.value == "new")
        #expect(cache.stored(request)?.value?.text == "new")
    }

    @Test(arguments: [true, false])
    func `a late answer of an abandoned call is not recorded`(_ isInMemory: Bool) async throws {
        let cache = try scene.cache(inMemory: isInMemory)
        let (began, late, ended) = (Pending<Void>(), Pending<Void>(), Pending<Void>())
        let first = Task {
            try await cache.request("r") { () -> Answer in
                began.finish(())
                // The function ignores its cancellation.
                await Task { await late.value(ifCancelled: ()) }.value
                defer { ended.finish(()) }
                return Answer(text: "old")
            }.text
        }
        await began.value(ifCancelled: ())
        first.cancel()
        await #expect(throws: LarderError.self) { try await first.value }
        #expect(try await cache.request("r") { Answer(text: "new") }.text == "new")
        late.finish(())
        await ended.value(ifCancelled: ())
        #expect(cache.stored(Resource<Answer>.request("r") { throw Broken() })?.value?.text == "new")
    }

    @Test(arguments: [true, false])
    func `a stored value has the time of its source`(_ isInMemory: Bool) async throws {
        let cache = try scene.cache(inMemory: isInMemory)
        let request = Resource<Answer>.request("r", lifetime: .seconds(100)) { throw Broken() }
        try await cache.put(Answer(text: "x"), for: request, fetchedAt: scene.clock.now - .seconds(50))
        let stored = try #require(cache.stored(request))
        #expect(stored.freshness.isFresh && stored.fetchedAt == scene.clock.now - .seconds(50))
        scene.clock.advance(by: .seconds(50))
        #expect(cache.stored(request)?.freshness == .stale(.expired))
    }

    @Test(arguments: [true, false])
    func `a record of another type is a miss and stays`(_ isInMemory: Bool) async throws {
        let cache = try scene.cache(inMemory: isInMemory)
        let text = Resource<Answer>.request("r") { throw Broken() }
        try await cache.put(Answer(text: "x"), for: text)
        #expect(cache.stored(Resource<Int>.request("r") { throw Broken() }) == nil)
        #expect(cache.stored(text)?.value?.text == "x")
        #expect(try await cache.request("r") { 7 } == 7)
    }

    @Test func `a failure is not recorded and reaches everyone who waits`() async throws {
        let cache = try scene.cache(inMemory: true)
        await #expect(throws: LarderError.self) { try await cache.request("r") { () -> Answer in throw Broken() } }
        scene.clock.advance(by: .seconds(1))
        #expect(try await cache.request("r") { Answer(text: "good") }.text == "good")
    }

    @Test func `a clock that was set back does not extend the lifetime of a record`() async throws {
        let cache = try scene.cache(inMemory: true)
        try await cache.put(Answer(text: "old"), for: .request("r") { throw Broken() })
        scene.clock.set(wall: scene.clock.now - .seconds(1_000))
        #expect(try await cache.request("r") { Answer(text: "new") }.text == "new")
    }

    @Test func `an answer survives the process`() async throws {
        let cache = try scene.cache()
        #expect(try await cache.request("answer", ["to": "everything"]) { 42 } == 42)
        let again = try scene.cache()
        #expect(try await again.request("answer", ["to": "everything"]) { 43 } == 42)
    }
}
