import Foundation
import LarderEvents
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

/// The threads on which a codec ran: disk work decodes and encodes.
private final class Threads: Sendable {
    private let names = Mutex<[String]>([])

    /// The names since the last call.
    func take() -> [String] {
        names.withLock { names in
            defer { names = [] }
            return names
        }
    }

    func note() {
        let name = DiskExecutor.isCurrentThread ? "disk" : Thread.isMainThread ? "main" : Thread.current.name ?? ""
        names.withLock { $0.append(name) }
    }

    var codec: PayloadCodec<String> {
        PayloadCodec(
            encode: {
                self.note()
                return Array($0.utf8)
            },
            decode: {
                self.note()
                return String(decoding: $0, as: UTF8.self)
            }
        )
    }
}

@Suite("Cache: disk work of asynchronous functions", .oneMinute)
struct DiskWorkTests {
    private let scene = CacheScene()
    private let threads = Threads()

    private func word(_ name: String) -> Resource<String> {
        Resource("word", ["name": name], freshness: .timeToLive(.seconds(60)), codec: threads.codec) { _ in .value(name)
        }
    }

    @MainActor
    @Test func `reads and replies use the disk on threads of the cache, and the caller's actor waits for neither`()
        async throws
    {
        for name in ["a", "b", "c", "d"] { _ = try await scene.cache().value(word(name)) }
        #expect(threads.take() == Array(repeating: "disk", count: 4))
        let cache = try scene.cache()
        #expect(try await cache.value(word("a")) == "a")
        #expect(try await cache.snapshot(word("b")).value == "b")
        for await snapshot in cache.snapshots(word("c")) {
            #expect(snapshot.value == "c")
            break
        }
        #expect(try await cache.requireValidated(word("d"), within: .seconds(30)).value == "d")
        #expect(threads.take() == Array(repeating: "disk", count: 4))
        #expect(try await cache.refresh(word("a")).value == "a")
        #expect(threads.take().allSatisfy { $0 == "disk" })
    }

    /// Notes the threads on which rows and metadata are read and written.
    private struct Tracing: DiskStore.PayloadTransform {
        let threads: Threads
        let identifier = "tracing"

        func encode(_ payload: [UInt8]) -> [UInt8] {
            threads.note()
            return payload
        }

        func decode(_ stored: [UInt8]) -> [UInt8] {
            threads.note()
            return stored
        }
    }

    private func traced() throws -> LarderCache {
        var configuration = scene.configuration()
        configuration.editStore { [threads] in $0.transform = Tracing(threads: threads) }
        return try LarderCache(configuration)
    }

    @Test(arguments: ["accepted", "rejected", "later"])
    func `the outbox reads and changes rows on threads of the cache`(_ outcome: String) async throws {
        let cache = try traced()
        let other = try traced()
        let sent = Mutex(0)
        var operation = WriteBehind<String, Int>("rename", scope: { $0 }) { id, local in
            local.modify(Note.self, id) { $0.text = "mine" }
        } send: { attempts in
            sent.withLock { $0 += attempts.count }
            return attempts.map { _ in
                switch outcome {
                case "accepted": .accepted(1)
                case "rejected": .rejected(LarderError(.rejected, "No.", status: 422))
                default: .retry(LarderError(.offline, "gone", retryAfter: .seconds(1)))
                }
            }
        }
        operation.acknowledge = { id, _, update in update.put(Note(id: id, text: "theirs")) }
        for cache in [cache, other] { cache.outbox.register(operation) }
        // The rows of the other one are read when the first one begins to send.
        for id in ["1", "2"] { try other.enqueue(id, operation) }
        _ = threads.take()
        cache.outbox.resume()
        await reached { sent.withLock { $0 } == 2 && cache.outbox.status.inFlight == 0 }
        let used = threads.take()
        #expect(!used.isEmpty && used.allSatisfy { $0 == "disk" })
    }

    @MainActor
    @Test func `a value that another process or a timer has outdated is read on threads of the cache`() async throws {
        let cache = try scene.cache()
        let other = try scene.cache()
        _ = try await other.value(word("a"))
        let snapshots = SequenceRecorder(cache.snapshots(word("a"), .cacheOnly))
        await snapshots.wait { !$0.isEmpty }
        for (text, step) in [("b", Duration.milliseconds(200)), ("c", .seconds(60))] {
            let changed = Resource("word", ["name": "a"], freshness: .timeToLive(.seconds(60)), codec: threads.codec) {
                _ in .value(text)
            }
            _ = try await other.refresh(changed)
            _ = threads.take()
            scene.clock.advance(by: step)
            if step < .seconds(1) { _ = try await cache.value(Resource<String>("other") { _ in .value("x") }) }
            await snapshots.wait { $0.last?.value == text }
            let used = threads.take()
            #expect(!used.isEmpty && used.allSatisfy { $0 == "disk" })
        }
    }

    @MainActor
    @Test func `that the clock was set back is stored on a thread of the cache`() async throws {
        let cache = try traced()
        let word = Resource<String>("word", freshness: .timeToLive(.seconds(60))) { _ in .value("a") }
        _ = try await cache.value(word)
        _ = threads.take()
        scene.clock.set(wall: scene.clock.now - .seconds(3_600))
        _ = try await cache.value(word, .cacheOnly)
        let used = Mutex<[String]>([])
        await reached { @Sendable [threads] in
            used.withLock { used in
                used += threads.take()
                return !used.isEmpty
            }
        }
        #expect(used.withLock { $0 }.allSatisfy { $0 == "disk" })
    }

    @MainActor
    @Test func `a memory hit is returned without a change of threads`() async throws {
        let cache = try scene.cache()
        let word = word("a")
        _ = try await cache.value(word)
        let hasLeft = Mutex(false)
        let other = Task { @MainActor in hasLeft.withLock { $0 = true } }
        for _ in 0..<100 { _ = try await cache.value(word) }
        for _ in 0..<100 { _ = try await cache.snapshot(word) }
        #expect(hasLeft.withLock { !$0 })
        await other.value
    }

    @Test func `a value is encoded before the commit, so that its codec may change the cache`() async throws {
        let cache = try scene.cache()
        let isFirst = Mutex(true)
        let codec = PayloadCodec<String>(
            encode: { value in
                if isFirst.withLock({ $0.exchange(false) }) {
                    try cache.updateBlocking { $0.put(Note(id: "1", text: "other")) }
                }
                return Array(value.utf8)
            },
            decode: { String(decoding: $0, as: UTF8.self) }
        )
        let word = Resource<String>("word", codec: codec) { _ in .value("a") }
        #expect(try await cache.value(word) == "a")
        #expect(cache.stored(Resource<Note>.entity("1") { _ in .gone })?.value?.text == "other")
        #expect(try await scene.cache().value(word, .cacheOnly) == "a")
    }

    @Test func `an executor runs as many jobs at once as it has threads, and all of them`() async {
        let executor = DiskExecutor(threadsMaximum: 3, order: nil)
        let gauge = Gauge()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<200 { group.addTask(executorPreference: executor) { gauge.run() } }
        }
        let seen = gauge.counts.withLock { $0 }
        #expect(seen.all == 200 && seen.now == 0 && (1...3).contains(seen.most))
    }
}

/// Counts how many jobs run at once.
private final class Gauge: Sendable {
    struct Counts {
        var now = 0
        var most = 0
        var all = 0
    }

    let counts = Mutex(Counts())

    func run() {
        counts.withLock { counts in
            counts.now += 1
            counts.all += 1
            counts.most = max(counts.most, counts.now)
        }
        for _ in 0..<1_000 { _ = Thread.current.name }
        counts.withLock { $0.now -= 1 }
    }
}

extension Bool {
    fileprivate mutating func exchange(_ value: Bool) -> Bool {
        defer { self = value }
        return self
    }
}
