import Foundation
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderEvents
@testable import LarderResources

@Suite("Cache: single-flight requests", .oneMinute)
struct FlightTests {
    let scene = CacheScene()

    private func word(_ source: ScriptedSource<String>, _ n: String = "1") -> Resource<String> {
        Resource("word", ["n": n], freshness: .timeToLive(.seconds(60))) { try await source.fetch($0) }
    }

    @Test func `ten thousand readers of one key make one request`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        let values = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<10_000 { group.addTask { try await cache.value(resource) } }
            await source.waitForRequests(1)
            source.answer(0, .value("one"))
            return try await group.reduce(into: [String]()) { $0.append($1) }
        }
        #expect(values.count == 10_000 && Set(values) == ["one"])
        #expect(source.requests.count == 1)
    }

    @Test func `a request survives cancelled readers and is cancelled with the last one`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        let first = Task { try await cache.value(resource) }
        await source.waitForRequests(1)
        let seen = SequenceRecorder(cache.snapshots(resource))
        await seen.wait(for: 1)
        first.cancel()
        await #expect(throws: LarderError.self) { try await first.value }
        #expect(source.cancelled == 0)
        seen.cancel()
        await source.waitForCancellations(1)
        #expect(source.requests.count == 1)
        // The cancellation is not recorded as a failure.
        source.prepare(.value("later"))
        #expect(try await cache.value(resource) == "later")
    }

    @Test func `an answer has the source network also if it comes before the observer is registered`() async throws {
        let source = ScriptedSource<String>()
        let resource = word(source)
        let (joined, hold) = (Pending<Bool>(), Hold())
        var configuration = scene.configuration()
        configuration.onEvent = { event in
            guard case .merged = event else { return }
            joined.finish(true)
            hold.wait()
        }
        let cache = try LarderCache(configuration)
        let first = Task { try await cache.value(resource) }
        await source.waitForRequests(1)
        let snapshots = try #require(cache.snapshots(resource) as? Snapshots<String>)
        let observing = Pending<Snapshots<String>.Subscription?>()
        // On a thread of its own, because it blocks between joining the request and observing.
        Thread { observing.finish(.init(snapshots.node, snapshots.options)) }.start()
        #expect(await joined.value(ifCancelled: false))
        source.answer(0, .value("one"))
        _ = try await first.value
        hold.open()
        let snapshot = await observing.value(ifCancelled: nil)?.mailbox.next()
        #expect(snapshot?.value == "one" && snapshot?.source == .network)
    }

    @Test func `an error reaches all waiting readers and is not stored`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        let readers = (0..<20).map { _ in Task { try await cache.value(resource) } }
        await source.waitForRequests(1)
        await scene.joined(readers.count - 1)
        let seen = SequenceRecorder(cache.snapshots(resource))
        await seen.wait(for: 1)
        source.fail(0, Broken())
        for reader in readers {
            let error = await #expect(throws: LarderError.self) { try await reader.value }
            #expect(error?.code == .fetchFailed && error?.cause is Broken)
        }
        await seen.wait { $0.last?.refreshError != nil }
        seen.cancel()
        scene.clock.advance(by: .seconds(1))
        source.prepare(.value("good"), .value("good"))
        #expect(try await cache.value(resource) == "good")
    }

    @Test func `a slow old reply never replaces a newer one`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        let old = Task { try await cache.snapshot(resource, .networkOnly) }
        await source.waitForRequests(1)
        scene.clock.advance(by: .seconds(1))
        let new = Task { try await cache.refresh(resource) }
        await source.waitForRequests(2)
        let seen = SequenceRecorder(cache.snapshots(resource, .cacheOnly))
        source.answer(1, .value("new"))
        #expect(try await new.value.value == "new")
        source.answer(0, .value("old"))
        // The reader of the old reply gets the newer value too.
        #expect(try await old.value.value == "new")
        #expect(try await cache.value(resource, .cacheOnly) == "new")
        cache.close()
        await seen.waitForEnd()
        #expect(!seen.elements.contains { $0.value == "old" })
        #expect(try await scene.cache().value(resource, .cacheOnly) == "new")
    }

    @Test func `an older version never replaces a newer one`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Note>()
        let note = Resource<Note>.entity("1") { try await source.fetch($0) }
        let reader = Task { try await cache.snapshot(note) }
        await source.waitForRequests(1)
        try await cache.update { $0.put(Note(id: "1", text: "pushed", revision: 7)) }
        source.answer(0, .value(Note(id: "1", text: "fetched", revision: 6)))
        #expect(try await reader.value.value?.text == "pushed")
        try await cache.update { $0.put(Note(id: "1", text: "late", revision: 5)) }
        #expect(try await cache.value(note, .cacheOnly).text == "pushed")
        #expect(try await scene.cache().value(note, .cacheOnly).text == "pushed")
    }

    @Test func `a refresh sends its own request while another is in flight`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        let reader = Task { try await cache.value(resource) }
        await source.waitForRequests(1)
        scene.clock.advance(by: .milliseconds(1))
        let refresh = Task { try await cache.refresh(resource) }
        await source.waitForRequests(2)
        #expect(source.requests.map(\.mustRevalidate) == [false, true])
        source.answer(0, .value("a"))
        source.answer(1, .value("b"))
        _ = try await reader.value
        #expect(try await refresh.value.value == "b")
    }

    @Test func `a read joins an earlier request in flight after a later one has failed`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        let first = Task { try await cache.refresh(resource) }
        await source.waitForRequests(1)
        scene.clock.advance(by: .milliseconds(1))
        let second = Task { try await cache.refresh(resource) }
        await source.waitForRequests(2)
        source.fail(1, Broken())
        await #expect(throws: LarderError.self) { try await second.value }
        // The end of the delay after a failure.
        scene.clock.advance(by: .seconds(1))
        source.prepare(.value("b"))
        let reader = Task { try await cache.value(resource) }
        await reached {
            source.requests.count > 2
                || scene.events.withLock { $0.contains { if case .merged = $0 { true } else { false } } }
        }
        source.answer(0, .value("a"))
        #expect(try await first.value.value == "a")
        #expect(try await reader.value == "a")
        #expect(source.requests.count == 2)
    }

    /// A refresh whose request, the first one, is still in flight when a later one is answered with "b".
    private func overtaken(
        _ resource: Resource<String>,
        _ source: ScriptedSource<String>,
        in cache: LarderCache
    ) async throws -> Task<Snapshot<String>, any Error> {
        let first = Task { try await cache.refresh(resource) }
        await source.waitForRequests(1)
        scene.clock.advance(by: .milliseconds(1))
        let second = Task { try await cache.refresh(resource) }
        await source.waitForRequests(2)
        source.answer(1, .value("b"))
        #expect(try await second.value.isFetching == false)
        return first
    }

    @Test func `a request that a later answer has overtaken is not joined, and its error is not shown`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        let first = try await overtaken(resource, source, in: cache)
        source.fail(0, Broken())
        await #expect(throws: LarderError.self) { try await first.value }
        let seen = SequenceRecorder(cache.snapshots(resource))
        await seen.wait(for: 1)
        #expect(seen.elements.map(\.value) == ["b"] && seen.elements.first?.refreshError == nil)
        seen.cancel()
        scene.clock.advance(by: .seconds(61))
        source.prepare(.value("c"))
        #expect(try await cache.value(resource) == "c")
    }

    @Test func `closing a cache ends a request that a later answer has overtaken`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let first = try await overtaken(word(source), source, in: cache)
        cache.close()
        let error = await #expect(throws: LarderError.self) { try await first.value }
        #expect(error?.code == .closed)
        await source.waitForCancellations(1)
    }

    @Test func `a fetch that never ends is abandoned at its time limit`() async throws {
        let cache = try scene.cache()
        var resource = Resource<String>("endless") { _ in
            // The fetch function ignores its cancellation.
            await unsafe withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
            return .value("never")
        }
        resource.timeout = .seconds(5)
        let read = resource
        let reader = Task { try await cache.value(read) }
        try await scene.clock.waitForSleepers(1)
        scene.clock.advance(by: .seconds(5))
        let error = await #expect(throws: LarderError.self) { try await reader.value }
        #expect(error?.code == .timedOut)
    }

    private final class Counter: Sendable {
        let counts = Mutex<[String: Int]>([:])
    }

    @Test func `reads of many keys make one request each`() async throws {
        let cache = try scene.cache()
        let counter = Counter()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for round in 0..<8 {
                for key in 0..<50 {
                    group.addTask {
                        let name = "\((key * 7 + round) % 50)"
                        let resource = Resource<String>("many", ["n": name]) { _ in
                            counter.counts.withLock { $0[name, default: 0] += 1 }
                            return .value(name)
                        }
                        let value = try await cache.value(resource)
                        #expect(value == name)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(counter.counts.withLock { $0 } == Dictionary(uniqueKeysWithValues: (0..<50).map { ("\($0)", 1) }))
    }

    @Test func `a failing fetch does not change the shown value`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        source.prepare(.value("content"))
        _ = try await cache.value(resource)
        let seen = SequenceRecorder(cache.snapshots(resource))
        await seen.wait(for: 1)
        source.prepare(failure: Broken())
        await #expect(throws: LarderError.self) { try await cache.refresh(resource) }
        await seen.wait { $0.last?.refreshError != nil }
        #expect(seen.elements.allSatisfy { $0.value == "content" && $0.freshness == .fresh })
    }

    @Test func `a late answer of an abandoned request does not replace a newer value`() async throws {
        let cache = try scene.cache()
        let (began, late) = (Pending<Void>(), Pending<String>())
        let isFirst = Atomic<Bool>(true)
        var resource = Resource<String>("word") { _ in
            guard isFirst.exchange(false, ordering: .relaxed) else { return .value("new") }
            began.finish(())
            // The fetch function ignores its cancellation.
            return .value(await Task { await late.value(ifCancelled: "cancelled") }.value)
        }
        resource.timeout = nil
        let word = resource
        let old = Task { try await cache.value(word) }
        await began.value(ifCancelled: ())
        let flight = cache.core.nodes.node(of: word, in: cache.core).state.withLock { $0.flight }
        old.cancel()
        await #expect(throws: LarderError.self) { try await old.value }
        #expect(try await cache.value(word) == "new")
        late.finish("old")
        await flight?.task?.value
        #expect(try await cache.value(word, .cacheOnly) == "new")
        #expect(try await scene.cache().value(word, .cacheOnly) == "new")
    }

    @Test func `the timer of an observer that begins while the last one ends stays`() async throws {
        let cache = try scene.cache(inMemory: true)
        let started = Pending<Void>()
        let hook = Mutex<(@Sendable () -> Void)?>(nil)
        var word = Resource<String>("word", freshness: .timeToLive(.seconds(60))) { _ in
            started.finish(())
            return try await withTaskCancellationHandler { () async throws -> Fetched<String> in
                await Pending<Void>().value(ifCancelled: ())
                throw CancellationError()
            } onCancel: {
                hook.withLock { $0.take() }?()
            }
        }
        word.timeout = nil
        let resource = word
        try await cache.put("a", for: resource)
        let second = Mutex<Snapshots<String>.Subscription?>(nil)
        do {
            let snapshots = try #require(cache.snapshots(resource, .networkOnly) as? Snapshots<String>)
            let first = Snapshots<String>.Subscription(snapshots.node, snapshots.options)
            await started.value(ifCancelled: ())
            let later = try #require(cache.snapshots(resource) as? Snapshots<String>)
            hook.withLock { hook in
                hook = {
                    let subscription = Snapshots<String>.Subscription(later.node, later.options)
                    second.withLock { $0 = subscription }
                }
            }
            withExtendedLifetime(first) {}
        }
        let subscription = try #require(second.withLock { $0.take() })
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .seconds(60))
        while let snapshot = await subscription.mailbox.next(), snapshot.freshness != .stale(.expired) {}
        #expect(cache.stored(resource)?.freshness == .stale(.expired))
    }
}
