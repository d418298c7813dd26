import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Outbox: storing results", .oneMinute)
struct OutboxSettlingTests {
    struct Line: Codable, Sendable, Equatable {
        var text: String
        var parent: String
    }

    let scene = CacheScene()
    let server = LikeServer(posts: 10)

    private func failures() -> [LarderError] {
        scene.events.withLock { events in
            events.compactMap { if case .storageFailed(let error) = $0 { error } else { nil } }
        }
    }

    @Test func `an acknowledgement that cannot be stored does not affect others, and is not requested again`()
        async throws
    {
        var configuration = scene.configuration()
        configuration.editStore { $0.bytesMaximum = 64 << 10 }
        let cache = try LarderCache(configuration)
        _ = try await cache.value(server.list(["1", "2", "3"]))
        var operation = server.operation
        operation.acknowledge = { tap, post, update in
            update.put(post)
            if tap.post == "2" {
                update.put(Note(id: "huge", text: String(repeating: "x", count: 128 << 10), revision: 1))
            }
        }
        for post in ["1", "2", "3"] { try cache.enqueue(Tap(post: post, isLike: true), operation) }
        cache.outbox.resume()
        let drain = try await cache.outbox.drain(within: .milliseconds(1))
        #expect(drain.isEmpty)
        #expect(server.requests.map { $0.count } == [3])
        #expect(failures().contains { $0.operation != nil && $0.description.contains("like") })
        // The other two acknowledgements are stored, and the values of this one are invalidated.
        for (post, freshness) in [("1", Freshness.fresh), ("2", .stale(.invalidated)), ("3", .fresh)] {
            let snapshot = try await cache.snapshot(server.post(resource: post), .cacheOnly)
            #expect(snapshot.value?.isMine == true && snapshot.freshness == freshness, "post \(post)")
        }
        let again = try scene.cache()
        #expect(again.outbox.entries.isEmpty)
        #expect(try await again.snapshot(server.post(resource: "2"), .cacheOnly).freshness == .stale(.invalidated))
    }

    @Test func `an operation is in the outbox until its acceptance was reported`() async throws {
        let outbox = Mutex<Outbox?>(nil)
        let atReport = Mutex<[Int]>([])
        var configuration = scene.configuration()
        configuration.onEvent = { event in
            guard case .accepted = event, let outbox = outbox.withLock({ $0 }) else { return }
            atReport.withLock { $0.append(outbox.entries.count) }
        }
        let cache = try LarderCache(configuration)
        outbox.withLock { $0 = cache.outbox }
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(atReport.withLock { $0 } == [1])
    }

    @Test func `an acknowledgement that changes a damaged entity ends its operation`() async throws {
        let cache = try scene.cache()
        let disk = try #require(cache.disk)
        let now = scene.clock.now
        try disk.put(
            DiskEntity(
                EntityKey(type: "liked", id: "9"),
                payload: Array("no JSON".utf8),
                fetchedAt: now,
                expiresAt: now + .seconds(60)
            )
        )
        var operation = server.operation
        operation.acknowledge = { _, post, update in
            update.put(post)
            update.modify(Liked.self, "9") { $0.likes += 1 }
        }
        try cache.enqueue(Tap(post: "1", isLike: true), operation)
        cache.outbox.resume()
        #expect(try await cache.outbox.drain(within: .milliseconds(1)).isEmpty)
        #expect(server.requests.count == 1)
    }

    @Test func `server IDs that could not be stored are assigned again and reach the disk`() async throws {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        configuration.random = { 0 }
        let cache = try LarderCache(configuration)
        let count = Mutex(0)
        var operation = WriteBehind<Line, String>(
            "line",
            scope: { _ in "page" },
            changes: { _, _ in },
            send: { attempts in
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                // The server has carried it out, and the result cannot be stored.
                if number == 1 { killable.fail(.full, untilHealed: true) }
                if number > 2 { throw TransportError(.unreachable, "no route") }
                return attempts.map { _ in .accepted("server-1") }
            }
        )
        operation.serverIDs = { line, name in [line.text: name] }
        operation.replacingIDs = { line, names in Line(text: line.text, parent: names[line.parent] ?? line.parent) }
        try cache.enqueue(Line(text: "local-1", parent: ""), operation)
        try cache.enqueue(Line(text: "local-2", parent: "local-1"), operation)
        let statuses = SequenceRecorder(cache.outbox.statuses)
        cache.outbox.resume()
        await statuses.wait { $0.last.map { $0.inFlight == 0 && $0.inDoubt == 1 } ?? false }
        killable.heal()
        cache.networkReturned()
        await statuses.wait { $0.last.map { $0.inFlight == 0 && $0.pending == 1 } ?? false }
        cache.close()
        configuration.storage = .store(try killable.reopen())
        let rows = try LarderCache(configuration).outbox.entries
        #expect(try rows.map { try $0.input(as: Line.self) } == [Line(text: "local-2", parent: "server-1")])
    }
    @Test(arguments: ["local-1", "local/1", "lokäl \"1\""])
    func `a server ID replaces the temporary one where it occurs, and other operations are not decoded`(
        _ temporary: String
    ) async throws {
        let cache = try scene.cache()
        let asked = Mutex<[String]>([])
        var operation = WriteBehind<Line, String>(
            "line",
            scope: { _ in "page" },
            changes: { _, _ in },
            send: { attempts in
                guard attempts.first?.input.text == temporary else { throw TransportError(.unreachable, "no route") }
                return [.accepted("server-1")]
            }
        )
        operation.serverIDs = { line, name in [line.text: name] }
        operation.replacingIDs = { line, names in
            asked.withLock { $0.append(line.text) }
            return Line(text: line.text, parent: names[line.parent] ?? line.parent)
        }
        try cache.enqueue(Line(text: temporary, parent: ""), operation)
        for number in 0..<20 { try cache.enqueue(Line(text: "\(number)", parent: "none"), operation) }
        try cache.enqueue(Line(text: "child", parent: temporary), operation)
        let statuses = SequenceRecorder(cache.outbox.statuses)
        cache.outbox.resume()
        await statuses.wait { $0.last.map { $0.inFlight == 0 && $0.pending == 21 } ?? false }
        #expect(try cache.outbox.entries.last?.input(as: Line.self).parent == "server-1")
        // An operation whose attempt follows may be asked again after it.
        #expect(asked.withLock { $0.contains("child") })
        if temporary == "local-1" { #expect(asked.withLock { $0 } == ["child"]) }
        cache.close()
    }
}
