import Foundation
import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

/// An entity whose comparison runs a function of the test.
private struct Watched: CacheEntity {
    static let entityType = "watched"
    static let onComparison = Mutex<(@Sendable () -> Void)?>(nil)

    var id: String
    var text: String

    static func == (left: Watched, right: Watched) -> Bool {
        // Once, because the function may compare too.
        onComparison.withLock { $0.take() }?()
        return left.id == right.id && left.text == right.text
    }
}

private struct Reserved: CacheEntity {
    static let entityType = "=note"
    var id: String
}

private final class Readers: Sendable {
    private let readers = Mutex<[Snapshots<Watched>]>([])

    var first: Snapshots<Watched> { readers.withLock { $0[0] } }

    func add(_ reader: Snapshots<Watched>) { readers.withLock { $0.append(reader) } }
}

/// Gives a cache to the handler of its own events.
private final class Handler: Sendable {
    private let state = Mutex<LarderCache?>(nil)

    var cache: LarderCache? { state.withLock { $0 } }

    func give(_ cache: LarderCache) { state.withLock { $0 = cache } }

    func take() -> LarderCache? { state.withLock { $0.take() } }
}

/// A clock whose sleeps call a function of the test when they are cancelled.
private final class TellingClock: MonotonicClock {
    let clock = ManualClock()
    let onCancel = Mutex<(@Sendable () -> Void)?>(nil)

    var uptime: MonotonicTime { clock.uptime }

    func sleep(until time: MonotonicTime) async throws(CancellationError) {
        do {
            try await withTaskCancellationHandler {
                try await clock.sleep(until: time)
            } onCancel: {
                onCancel.withLock { $0 }?()
            }
        } catch { throw CancellationError() }
    }
}

/// Expects parts of the message with which a process has stopped. Optimised code stops without a message.
func expectMessage(_ parts: [String], in output: [UInt8]?, _ location: SourceLocation = #_sourceLocation) {
    guard areMessagesCompiled() else { return }
    let text = String(decoding: output ?? [], as: UTF8.self)
    for part in parts { #expect(text.contains(part), sourceLocation: location) }
}

private func areMessagesCompiled() -> Bool { _isDebugAssertConfiguration() }

/// Each test runs in a process of its own, which the tested call stops.
@Suite("Cache: re-entrant calls from user functions", .oneMinute)
struct ReentryTests {
    private static func cache() throws -> LarderCache {
        let cache = try LarderCache(CacheConfiguration())
        try cache.updateBlocking { $0.put(Watched(id: "1", text: "a")) }
        return cache
    }

    @Test func `an update within modify stops with a message`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let cache = try ReentryTests.cache()
            try await cache.update { update in
                update.modify(Watched.self, "1") { _ in
                    do { try cache.updateBlocking { $0.invalidate(tag: "x") } } catch { Issue.record(error) }
                }
            }
        }
        expectMessage(["Update.modify", "when LarderCache.update has returned"], in: result?.standardErrorContent)
    }

    @Test func `enqueuing an operation within modify stops with a message`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let cache = try ReentryTests.cache()
            let operation = WriteBehind<String, Int>(
                "like",
                scope: { $0 },
                changes: { _, _ in },
                send: { _ in [] }
            )
            try await cache.update { update in
                update.modify(Watched.self, "1") { _ in
                    do { _ = try cache.enqueue("1", operation) } catch { Issue.record(error) }
                }
            }
        }
        expectMessage(["Update.modify", "when LarderCache.update has returned"], in: result?.standardErrorContent)
    }

    @Test func `an update within a list's edit stops with a message`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let cache = try ReentryTests.cache()
            let list = Resource<EntityList<Watched>>.list("list", of: Watched.self) { _ in .value(EntityList([])) }
            _ = try await cache.value(list)
            try await cache.update { update in
                update.edit(list.key) { _ in
                    do { try cache.updateBlocking { $0.invalidate(tag: "x") } } catch { Issue.record(error) }
                }
            }
        }
        expectMessage(["Update.edit", "when LarderCache.update has returned"], in: result?.standardErrorContent)
    }

    @Test func `an update within the comparison of an entity that is stored stops with a message`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let cache = try ReentryTests.cache()
            let update: @Sendable () -> Void = {
                do { try cache.updateBlocking { $0.invalidate(tag: "x") } } catch { Issue.record(error) }
            }
            // The first comparison, before the commit, finds out whether to encode the value.
            Watched.onComparison.withLock { $0 = { Watched.onComparison.withLock { $0 = update } } }
            try await cache.update { $0.put(Watched(id: "1", text: "b")) }
        }
        expectMessage(["==", "when LarderCache.update has returned"], in: result?.standardErrorContent)
    }

    @Test func `a reader can be created within modify`() async throws {
        await #expect(processExitsWith: .success) {
            let cache = try ReentryTests.cache()
            let readers = Readers()
            try await cache.update { update in
                update.modify(Watched.self, "1") { watched in
                    watched.text = "b"
                    let resource = Resource<Watched>.entity("1") { _ in .value(Watched(id: "1", text: "c")) }
                    readers.add(cache.snapshots(resource, .cacheOnly) as! Snapshots<Watched>)
                }
            }
            var reader = readers.first.makeAsyncIterator()
            let first = await reader.next(isolation: nil)
            guard first?.value?.text == "b" else { preconditionFailure("\(String(describing: first))") }
        }
    }

    @Test func `an update within the comparison of snapshots is carried out`() async throws {
        await #expect(processExitsWith: .success) {
            let cache = try ReentryTests.cache()
            let resource = Resource<Watched>.entity("1") { _ in .value(Watched(id: "1", text: "fetched")) }
            var reader = cache.snapshots(resource, .cacheOnly).makeAsyncIterator()
            _ = await reader.next(isolation: nil)
            let isUpdated = Atomic<Bool>(false)
            Watched.onComparison.withLock { body in
                body = {
                    do { try cache.updateBlocking { $0.modify(Watched.self, "1") { $0.text += "!" } } } catch {
                        preconditionFailure("\(error)")
                    }
                    isUpdated.store(true, ordering: .relaxed)
                }
            }
            // Compares shown values only, no stored ones.
            try await cache.update { $0.modify(Watched.self, "1") { $0.text = "b" } }
            _ = await reader.next(isolation: nil)
            guard isUpdated.load(ordering: .relaxed) else { preconditionFailure("Nothing was compared.") }
        }
    }

    @Test func `a handler of a disk failure may change the cache`() async throws {
        await #expect(processExitsWith: .success) {
            let scene = CacheScene()
            let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
            let handler = Handler()
            var configuration = scene.configuration()
            configuration.storage = .store(try killable.store())
            configuration.onEvent = { event in
                guard case .storageFailed = event, let cache = handler.cache else { return }
                killable.heal()
                do { try cache.updateBlocking { $0.setToken("t", for: "changes") } } catch {
                    preconditionFailure("\(error)")
                }
                killable.fail(.full, atStep: 1, untilHealed: true)
            }
            let cache = try LarderCache(configuration)
            handler.give(cache)
            // The read and the write of the fetched value fail.
            killable.fail(.full, atStep: 1, untilHealed: true)
            let value = try await cache.value(Resource<String>("word") { _ in .value("a") })
            killable.heal()
            guard value == "a", try cache.disk?.token("changes") == "t" else { preconditionFailure("\(value)") }
        }
    }

    @Test func `a handler of store events may change the cache`() async throws {
        await #expect(processExitsWith: .success) {
            let scene = CacheScene()
            let handler = Handler()
            var configuration = scene.configuration()
            configuration.editStore { $0.bytesMaximum = 20_000 }
            configuration.onEvent = { event in
                guard case .disk(.evicted) = event, let cache = handler.take() else { return }
                do { try cache.updateBlocking { $0.setToken("t", for: "changes") } } catch {
                    preconditionFailure("\(error)")
                }
            }
            let cache = try LarderCache(configuration)
            handler.give(cache)
            for number in 0..<4 {
                let text = String(repeating: "x", count: 8_000)
                _ = try await cache.value(Resource<String>("word", ["n": "\(number)"]) { _ in .value(text) })
            }
            guard try cache.disk?.token("changes") == "t" else {
                preconditionFailure("The handler has changed nothing.")
            }
        }
    }

    @Test func `an entity type must not begin with an equals sign`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try await LarderCache(CacheConfiguration()).update { $0.put(Reserved(id: "1")) }
        }
        expectMessage(["\"=note\"", "entityType"], in: result?.standardErrorContent)
    }

    @Test func `a sleeper may read the cache when its sleep is cancelled`() async {
        await #expect(processExitsWith: .success) {
            let clock = TellingClock()
            var configuration = CacheConfiguration()
            (configuration.monotonicClock, configuration.wallClock) = (clock, clock.clock)
            let cache = try LarderCache(configuration)
            func word(_ lifetime: Duration) -> Resource<String> {
                Resource("word", freshness: .timeToLive(lifetime)) { _ in .value("a") }
            }
            let calls = Atomic<Int>(0)
            clock.onCancel.withLock { handler in
                handler = {
                    calls.add(1, ordering: .relaxed)
                    _ = cache.stored(Resource<String>("word") { _ in .value("a") })
                }
            }
            let long = SequenceRecorder(cache.snapshots(word(.seconds(60))))
            await long.wait { $0.last?.freshness == .fresh }
            // Its timer takes the place of the first one.
            let short = SequenceRecorder(cache.snapshots(word(.seconds(30))))
            await short.wait { $0.last?.freshness == .fresh }
            try await clock.clock.waitForSleepers(1)
            long.cancel()
            short.cancel()
            await reached { calls.load(ordering: .relaxed) >= 2 }
        }
    }
}
