import Foundation
import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

private struct Message: Codable, Sendable, Equatable {
    var room: String
    var text: String
}

/// A server that carries out each idempotency key once and records the order.
private final class ChatServer: Sendable {
    private struct State {
        var keys: Set<String> = []
        var rooms: [String: [String]] = [:]
        var attempts = 0
    }

    private let state = Mutex(State())

    /// How many operations were sent, repeated ones included.
    var attempts: Int { state.withLock { $0.attempts } }

    func texts(in room: String) -> [String] { state.withLock { $0.rooms[room] ?? [] } }

    var operation: WriteBehind<Message, Int> {
        var operation = WriteBehind<Message, Int>("say", scope: { $0.room }, changes: { _, _ in }) {
            [weak self] attempts in
            attempts.map { attempt in
                self?.state.withLock { state in
                    state.attempts += 1
                    guard state.keys.insert(attempt.idempotencyKey).inserted else { return }
                    state.rooms[attempt.input.room, default: []].append(attempt.input.text)
                }
                return .accepted(0)
            }
        }
        operation.batchMaximum = 20
        return operation
    }
}

/// The damage to the files of a store while it is open.
enum FileDamage: String, CaseIterable, Sendable {
    case garbage, zeros, cut, emptied, databaseRemoved, databaseRenamed, filesRemoved

    /// Whether reads do not detect it until the file is opened again.
    var isHidden: Bool { [.garbage, .zeros, .cut].contains(self) }

    /// - Parameter directory: of the store; the outbox has one of its own.
    func apply(to directory: String) throws {
        let database = directory + "/store.sqlite"
        let files = FileManager.default
        switch self {
        case .garbage, .zeros:
            let size = try #require(files.contents(atPath: database)).count
            let handle = try FileHandle(forUpdating: URL(fileURLWithPath: database))
            try handle.write(contentsOf: Data(repeating: self == .zeros ? 0 : 0xA5, count: size))
            try handle.close()
        case .cut, .emptied:
            let handle = try FileHandle(forUpdating: URL(fileURLWithPath: database))
            try handle.truncate(atOffset: self == .cut ? 10_000 : 0)
            try handle.close()
        case .databaseRemoved: try files.removeItem(atPath: database)
        case .databaseRenamed: try files.moveItem(atPath: database, toPath: directory + "/elsewhere")
        case .filesRemoved:
            for suffix in ["", "-wal", "-shm"] { try files.removeItem(atPath: database + suffix) }
        }
    }
}

/// The files of a store are damaged while operations wait in it: none that was acknowledged may be lost, doubled or out of order.
@Suite("Outbox: a damaged store", .oneMinute)
struct OutboxDamageTests {
    private let scene = CacheScene()
    private let chat = ChatServer()

    private var recoveries: [DiskStore.Recovery] {
        scene.events.withLock { $0 }.compactMap { event in
            if case .disk(.recovered(let recovery)) = event { recovery } else { nil }
        }
    }

    /// Enqueues messages to three rooms.
    private func say(_ range: Range<Int>, in cache: LarderCache, _ name: String = "") throws -> [OperationID] {
        try range.compactMap { index in
            let text = "\(name)\(index) " + String(repeating: "x", count: 200)
            return try cache.enqueue(Message(room: "\(name)\(index % 3)", text: text), chat.operation)
        }
    }

    private func expected(_ range: Range<Int>, room: Int, _ name: String = "") -> [String] {
        range.filter { $0 % 3 == room }.map { "\(name)\($0) " + String(repeating: "x", count: 200) }
    }

    @Test(arguments: FileDamage.allCases, [false, true])
    func `every acknowledged operation arrives once and in order after damage in use`(
        _ damage: FileDamage,
        _ isReopened: Bool
    ) async throws {
        let cache = try scene.cache()
        cache.outbox.register(chat.operation)
        var ids = try say(0..<200, in: cache)
        // These operations are in the database, and the next ones in its log.
        cache.disk?.suspend()
        ids += try say(200..<300, in: cache)
        try damage.apply(to: scene.outboxPath)
        if isReopened { cache.disk?.suspend() }
        ids += try say(300..<400, in: cache)
        // Numbers are never assigned twice, and keep the order.
        #expect(ids == ids.sorted() && Set(ids).count == 400)
        #expect(cache.outbox.entries.map(\.id) == ids)
        if isReopened || !damage.isHidden { #expect(!recoveries.isEmpty) }
        cache.outbox.resume()
        try await cache.outbox.drained()
        for room in 0..<3 { #expect(chat.texts(in: "\(room)") == expected(0..<400, room: room)) }
        let again = try scene.cache()
        #expect(again.outbox.entries.isEmpty)
        let next = try say(400..<401, in: again)
        #expect(next[0] > ids[399])
    }

    @Test(arguments: FileDamage.allCases)
    func `operations restored after damage survive a restart`(_ damage: FileDamage) async throws {
        var cache = try scene.cache()
        _ = try say(0..<100, in: cache)
        cache.disk?.suspend()
        _ = try say(100..<150, in: cache)
        try damage.apply(to: scene.outboxPath)
        cache.disk?.suspend()
        _ = try say(150..<200, in: cache)
        let before = cache.outbox.entries
        cache = try scene.cache()
        #expect(cache.outbox.entries.map(\.id) == before.map(\.id))
        #expect(cache.outbox.entries.map(\.idempotencyKey) == before.map(\.idempotencyKey))
        cache.outbox.register(chat.operation)
        cache.outbox.resume()
        try await cache.outbox.drained()
        for room in 0..<3 { #expect(chat.texts(in: "\(room)") == expected(0..<200, room: room)) }
    }

    @Test(arguments: [FileDamage.databaseRemoved, .databaseRenamed, .filesRemoved])
    func `operations acknowledged by two processes survive the replacement of the store by one of them`(
        _ damage: FileDamage
    )
        async throws
    {
        let one = try scene.cache()
        let two = try scene.cache()
        for cache in [one, two] { cache.outbox.register(chat.operation) }
        for range in [0..<60, 60..<90] {
            _ = try say(range, in: one, "one")
            _ = try say(range, in: two, "two")
            if range.lowerBound == 0 { for cache in [one, two] { cache.disk?.suspend() } }
        }
        try damage.apply(to: scene.outboxPath)
        _ = try say(90..<120, in: two, "two")
        _ = try say(90..<120, in: one, "one")
        _ = try say(120..<150, in: two, "two")
        one.outbox.resume()
        try await one.outbox.drained()
        one.close()
        two.outbox.resume()
        two.networkReturned()
        try await two.outbox.drained()
        for room in 0..<3 {
            #expect(chat.texts(in: "one\(room)") == expected(0..<120, room: room, "one"))
            #expect(chat.texts(in: "two\(room)") == expected(0..<150, room: room, "two"))
        }
        #expect(try scene.cache().outbox.entries.isEmpty)
        #expect(!recoveries.isEmpty)
    }

    /// - Parameter isUsedBefore: whether an earlier process has sent an operation, so that numbers do not begin with 1.
    @Test(arguments: FileDamage.allCases, [false, true])
    func `operations sent or dropped before the damage are not restored`(_ damage: FileDamage, _ isUsedBefore: Bool)
        async throws
    {
        let server = LikeServer(posts: 10)
        if isUsedBefore {
            let earlier = try scene.cache()
            try earlier.enqueue(Tap(post: "9", isLike: true), server.operation)
            earlier.outbox.resume()
            try await earlier.outbox.drained()
            earlier.close()
        }
        let cache = try scene.cache()
        let dropped = try #require(try cache.enqueue(Tap(post: "1", isLike: true), server.operation))
        try cache.enqueue(Tap(post: "2", isLike: true), server.operation)
        // The database has both operations, and its log has their removal.
        cache.disk?.suspend()
        try cache.outbox.drop(dropped)
        cache.outbox.resume()
        try await cache.outbox.drained()
        cache.outbox.pause()
        try damage.apply(to: scene.outboxPath)
        if damage.isHidden { cache.disk?.suspend() }
        try cache.enqueue(Tap(post: "3", isLike: true), server.operation)
        let again = try scene.cache()
        #expect(again.outbox.entries.count == 1)
        again.outbox.register(server.operation)
        again.outbox.resume()
        try await again.outbox.drained()
        #expect(server.requests == (isUsedBefore ? [["9+"]] : []) + [["2+"], ["3+"]])
    }

    @Test func `what the replacing process has sent is not sent again by another one, also in a store with a past`()
        async throws
    {
        let earlier = try scene.cache()
        earlier.outbox.register(chat.operation)
        _ = try say(0..<3, in: earlier)
        earlier.outbox.resume()
        try await earlier.outbox.drained()
        earlier.close()
        let (one, two) = (try scene.cache(), try scene.cache())
        for cache in [one, two] { cache.outbox.register(chat.operation) }
        _ = try say(3..<4, in: one)
        #expect(try two.outbox.storedInputs(of: "say", as: Message.self).count == 1)
        try FileDamage.filesRemoved.apply(to: scene.outboxPath)
        _ = try say(4..<5, in: one)
        one.outbox.resume()
        try await one.outbox.drained()
        one.close()
        two.outbox.resume()
        _ = try say(5..<6, in: two)
        try await two.outbox.drained()
        #expect(!recoveries.isEmpty)
        #expect(chat.attempts == 6)
    }

    @Test
    func `an operation in flight during the damage is in doubt after a restart, and a rejected one stays rejected`()
        async throws
    {
        let server = LikeServer(posts: 10)
        server.behave { _ in .rejects(["1"]) }
        let cache = try scene.cache()
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        cache.outbox.resume()
        try await cache.outbox.drained()
        let gate = ScriptedSource<Int>()
        var slow = WriteBehind<Message, Int>("slow", scope: { $0.room }, changes: { _, _ in }) { attempts in
            _ = try await gate.fetch(FetchContext())
            return attempts.map { _ in .accepted(0) }
        }
        slow.timeout = .seconds(3_600)
        try cache.enqueue(Message(room: "a", text: "b"), slow)
        await gate.waitForRequests(1)
        let before = cache.outbox.entries
        #expect(before.map(\.state) == [.rejected, .sending])
        try FileDamage.filesRemoved.apply(to: scene.outboxPath)
        // No readable data is left.
        cache.disk?.suspend()
        try cache.enqueue(Message(room: "b", text: "c"), slow)
        cache.close()
        let again = try scene.cache()
        #expect(again.outbox.entries.map(\.state) == [.rejected, .inDoubt, .pending])
        #expect(again.outbox.entries.map(\.attempts) == [1, 1, 0])
        #expect(again.outbox.entries.prefix(2).map(\.idempotencyKey) == before.map(\.idempotencyKey))
        #expect(again.outbox.rejected.first?.rejection == before.first?.rejection)
    }

    @Test func `a removed directory counts as erased: nothing is acknowledged, sent or restored`()
        async throws
    {
        let cache = try scene.cache()
        _ = try say(0..<3, in: cache)
        try FileManager.default.removeItem(atPath: scene.path)
        let rejected = #expect(throws: LarderError.self) { try say(3..<4, in: cache) }
        #expect(rejected?.code == .storage, "\(String(describing: rejected?.cause))")
        cache.outbox.resume()
        let error = await #expect(throws: LarderError.self) { try await cache.outbox.drained() }
        #expect(error?.code == .storage)
        #expect(chat.texts(in: "0").isEmpty && cache.outbox.entries.count == 3)
        #expect(!FileManager.default.fileExists(atPath: scene.path))
    }

    @Test func `operations erased by another process are not restored into the next store`() throws {
        let old = try scene.cache()
        _ = try say(0..<3, in: old)
        let other = try scene.cache()
        try other.erase()
        let new = try scene.cache()
        _ = try say(10..<12, in: new)
        // The other process finds a store that is not its own, perhaps of another user.
        let rejected = #expect(throws: LarderError.self) { try say(12..<13, in: old) }
        #expect(rejected?.code == .storage)
        let texts = try scene.cache().outbox.entries.map { try $0.input(as: Message.self).text.prefix(2) }
        #expect(texts == ["10", "11"])
    }

    @Test func `an operation that another process has edited is sent under its new key`() async throws {
        let server = LikeServer(posts: 10)
        server.behave { $0 == 1 ? .rejects(["1"]) : .answers }
        let keys = Mutex<[String]>([])
        var operation = server.operation
        operation.send = { attempts in
            keys.withLock { $0 += attempts.map(\.idempotencyKey) }
            return try server.send(attempts)
        }
        let one = try scene.cache()
        try one.enqueue(Tap(post: "1", isLike: true), operation)
        let two = try scene.cache()
        two.outbox.register(operation)
        two.outbox.resume()
        try await two.outbox.drained()
        two.outbox.pause()
        let rejected = try #require(two.outbox.rejected.first)
        try two.outbox.edit(rejected.id, to: Tap(post: "1", isLike: false), operation)
        let edited = try #require(two.outbox.entries.first)
        two.close()
        one.outbox.resume()
        try await one.outbox.drained()
        #expect(server.requests == [["1+"], ["1-"]])
        #expect(keys.withLock { $0 } == [rejected.idempotencyKey, edited.idempotencyKey])
        #expect(rejected.idempotencyKey != edited.idempotencyKey)
    }
}
