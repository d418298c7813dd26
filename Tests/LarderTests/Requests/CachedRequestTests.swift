import Foundation
import Larder
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@Suite("The generic cached request", .oneMinute)
struct CachedRequestTests {
    enum Kind: String, CaseIterable, Sendable { case memory, file, disk }

    struct Answer: Codable, Sendable, Equatable {
        var text: String
    }

    final class Counter: Sendable {
        let count = Mutex(0)

        func next() -> Answer { Answer(text: "\(count.withLock { $0 += 1; return $0 })") }
    }

    let scene = CacheScene()

    private func storage(_ kind: Kind) throws -> any RequestStorage {
        switch kind {
        case .memory: MemoryRequestStorage()
        case .file: try FileRequestStorage(directory: scene.path)
        case .disk:
            DiskRequestStorage(try DiskStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock)))
        }
    }

    private func requests(_ kind: Kind) throws -> CachedRequests {
        CachedRequests(storage: try storage(kind), clock: scene.clock)
    }

    @Test(arguments: Kind.allCases)
    func `an answer is used for a day, and then the function is called again`(_ kind: Kind) async throws {
        let requests = try requests(kind)
        let counter = Counter()
        for parameters in [["b": "2", "a": "1"], ["a": "1", "b": "2"]] {
            let result = try await requests.request("r", parameters) { counter.next() }
            #expect(result.value.text == "1")
        }
        scene.clock.advance(by: .seconds(86_399))
        #expect(try await requests.request("r", ["a": "1", "b": "2"]) { counter.next() }.isFromCache)
        scene.clock.advance(by: .seconds(1))
        let second = try await requests.request("r", ["a": "1", "b": "2"]) { counter.next() }
        #expect(second.value.text == "2" && !second.isFromCache && second.recordedAt == scene.clock.now)
        #expect(try await requests.request("r", ["a": "2", "b": "1"]) { counter.next() }.value.text == "3")
    }

    @Test(arguments: Kind.allCases, RequestStrategy.allCases)
    func `each strategy gives exactly its answers`(_ kind: Kind, _ strategy: RequestStrategy) async throws {
        let requests = try requests(kind)
        func all() async -> [String] {
            var texts: [String] = []
            do {
                for try await answer in requests.answers("r", strategy: strategy, load: { Answer(text: "new") }) {
                    texts.append(answer.value.text)
                }
            } catch {
                texts.append(error.code.rawValue)
            }
            return texts
        }
        #expect(await all() == (strategy == .cacheNoLoad ? ["notCached"] : ["new"]))
        try requests.store(Answer(text: "old"), for: "r")
        let expected: [RequestStrategy: [String]] = [
            .cacheNoLoad: ["old"], .noCacheDoLoad: ["new"], .cacheElseLoad: ["old"], .cacheAndLoad: ["old", "new"],
        ]
        #expect(await all() == expected[strategy])
        scene.clock.advance(by: .seconds(100_000))
        try requests.store(Answer(text: "old"), for: "r", lifetime: .zero)
        #expect(await all() == (strategy == .cacheElseLoad ? ["new"] : expected[strategy]))
    }

    @Test func `calls for a key that is on its way wait for it`() async throws {
        let requests = try requests(.memory)
        let source = ScriptedSource<Answer>()
        let load: @Sendable () async throws -> Answer = {
            guard let value = try await source.fetch(FetchContext()).value else { throw Broken() }
            return value
        }
        async let first = requests.request("r", load: load)
        await source.waitForRequests(1)
        let others = (0..<50).map { _ in Task { try await requests.request("r", load: load).value.text } }
        let different = Task { try await requests.request("other", load: load).value.text }
        await source.waitForRequests(2)
        source.answer(1, .value(Answer(text: "other")))
        #expect(try await different.value == "other")
        source.answer(0, .value(Answer(text: "shared")))
        #expect(try await first.value.text == "shared")
        for other in others { #expect(try await other.value == "shared") }
        #expect(source.requests.count == 2)
    }

    @Test(arguments: Kind.allCases, ["one", "all", "stored"])
    func `what is on its way when something newer is said is not recorded`(_ kind: Kind, _ news: String) async throws {
        let requests = try requests(kind)
        let source = ScriptedSource<Answer>()
        let load: @Sendable () async throws -> Answer = {
            guard let value = try await source.fetch(FetchContext()).value else { throw Broken() }
            return value
        }
        let first = Task { try await requests.request("r", load: load).value.text }
        await source.waitForRequests(1)
        switch news {
        case "one": try requests.remove("r")
        case "all": try requests.removeAll()
        default: try requests.store(Answer(text: "by hand"), for: "r")
        }
        source.answer(0, .value(Answer(text: "old")))
        // Whoever waits for it has it.
        #expect(try await first.value == "old")
        #expect(requests.retrieve(Answer.self, for: "r")?.value.text == (news == "stored" ? "by hand" : nil))
        try requests.remove("r")
        let second = Task { try await requests.request("r", load: load).value.text }
        await source.waitForRequests(2)
        source.answer(1, .value(Answer(text: "new")))
        #expect(try await second.value == "new")
        #expect(requests.retrieve(Answer.self, for: "r")?.value.text == "new")
    }

    /// A value that tells when its last copy is released.
    private struct Traced: Codable, Sendable {
        final class End: Codable, Sendable {
            private let body: @Sendable () -> Void

            init(_ body: @escaping @Sendable () -> Void) { self.body = body }

            init(from decoder: any Decoder) { body = {} }

            deinit { body() }

            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(0)
            }
        }

        var text: String
        var end = End({})
    }

    @Test(arguments: Kind.allCases)
    func `a late answer of a call that was given up is not recorded`(_ kind: Kind) async throws {
        let requests = try requests(kind)
        let (began, late, ended) = (Pending<Void>(), Pending<Void>(), Pending<Void>())
        let first = Task {
            try await requests.request("r") { () -> Traced in
                began.finish(())
                // This function does not notice that it is cancelled.
                await Task { await late.value(ifCancelled: ()) }.value
                return Traced(text: "old", end: Traced.End { ended.finish(()) })
            }.value.text
        }
        await began.value(ifCancelled: ())
        first.cancel()
        await #expect(throws: LarderError.self) { try await first.value }
        #expect(try await requests.request("r") { Traced(text: "new") }.value.text == "new")
        late.finish(())
        await ended.value(ifCancelled: ())
        #expect(requests.retrieve(Traced.self, for: "r")?.value.text == "new")
    }

    @Test(arguments: Kind.allCases)
    func `outdated records are removed, and others are not`(_ kind: Kind) async throws {
        let requests = try requests(kind)
        try requests.store(Answer(text: "short"), for: "short", lifetime: .seconds(10))
        try requests.store(Answer(text: "long"), for: "long", lifetime: .seconds(100))
        scene.clock.advance(by: .seconds(50))
        #expect(try requests.removeOutdated() == 1)
        #expect(requests.retrieve(Answer.self, for: "short") == nil)
        let kept = try #require(requests.retrieve(Answer.self, for: "long"))
        #expect(kept.value.text == "long" && kept.recordedAt == scene.clock.now - .seconds(50))
        try requests.removeAll()
        #expect(requests.retrieve(Answer.self, for: "long") == nil)
    }

    @Test(arguments: Kind.allCases)
    func `a record of another type is a miss, and stays`(_ kind: Kind) async throws {
        let requests = try requests(kind)
        try requests.store(Answer(text: "x"), for: "r")
        #expect(requests.retrieve(Int.self, for: "r") == nil)
        #expect(requests.retrieve(Answer.self, for: "r")?.value.text == "x")
        #expect(try await requests.request("r") { 7 }.value == 7)
    }

    @Test func `a failure is not recorded, and reaches everyone who waits`() async throws {
        let requests = try requests(.memory)
        await #expect(throws: LarderError.self) { try await requests.request("r") { () -> Answer in throw Broken() } }
        #expect(try await requests.request("r") { Answer(text: "good") }.value.text == "good")
    }

    @Test func `a file that was tampered with is a miss`() async throws {
        let requests = try requests(.file)
        try requests.store(Answer(text: "x"), for: "../r")
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: scene.path).first)
        let path = scene.path + "/" + name
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        bytes[bytes.count - 3] ^= 1
        try bytes.write(to: URL(fileURLWithPath: path))
        #expect(requests.retrieve(Answer.self, for: "../r") == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scene.path).isEmpty)
    }

    @Test func `a clock that was set back makes no record last longer`() async throws {
        let requests = try requests(.memory)
        try requests.store(Answer(text: "old"), for: "r")
        scene.clock.set(wall: scene.clock.now - .seconds(1_000))
        #expect(try await requests.request("r") { Answer(text: "new") }.value.text == "new")
    }

    @Test func `a cache takes any function`() async throws {
        let cache = try scene.cache()
        #expect(try await cache.request("answer", ["to": "everything"]) { 42 } == 42)
        let again = try scene.cache()
        #expect(try await again.request("answer", ["to": "everything"]) { 43 } == 42)
    }
}
