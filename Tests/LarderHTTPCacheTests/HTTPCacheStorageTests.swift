import Foundation
import LarderHTTP
import LarderHTTPCache
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderStorage
@testable import LarderTransport

@Suite("HTTP cache: storages", .oneMinute)
struct HTTPCacheStorageTests {
    private let fresh: Fields = [.cacheControl: "max-age=60", .etag: "\"1\""]

    enum Kind: String, CaseIterable { case memory, disk }

    private func storage(_ kind: Kind, _ disk: DiskFixture) throws -> any HTTPCacheStorage {
        switch kind {
        case .memory: return DiskHTTPCacheStorage(inMemory: 16 << 20)
        case .disk: return DiskHTTPCacheStorage(try disk.store())
        }
    }

    @Test(arguments: Kind.allCases) func `what is stored is given back, renewed, and removed`(kind: Kind) async throws {
        let disk = DiskFixture()
        let stage = CacheStage(Origin(), storage: try storage(kind, disk))
        let name = FieldName.custom("X-Test")
        stage.origin.answer { request, _ in
            let who = request.fields[name] ?? ""
            let fields: Fields = [
                .cacheControl: "max-age=60", .vary: "X-Test", .etag: "\"\(who)\"", .custom("X-A"): "ä\"\\",
                .custom("X-A"): "2",
            ]
            if request.fields[.ifNoneMatch]?.contains("\"\(who)\"") ?? false { return reply(fields, "", status: 304) }
            return reply(fields, "for \(who)")
        }
        for _ in 0..<2 {
            for who in ["a", "b", ""] {
                let response = try await stage.get([name: who])
                #expect(response.text == "for \(who)")
                #expect(response.fields.values(of: .custom("X-A")) == ["ä\"\\", "2"])
            }
        }
        #expect(stage.origin.count == 3)
        stage.clock.advance(by: .seconds(60))
        #expect(try await stage.get([name: "a"]).source == .revalidated)
        #expect(try await stage.get([name: "a"]).source == .hit)
        #expect(try await stage.get([name: "b"]).source == .revalidated)
        await stage.cache.remove(url: CacheStage.url)
        #expect(try await stage.get([name: "a"]).source == .network)
        await stage.cache.removeAll()
        #expect(try await stage.get([name: "a"]).source == .network)
        #expect(stage.failures.count == 0)
    }

    @Test(arguments: [-1_800, 7_200, 0.5] as [Double])
    func `a response is as old as before after the clock was set, until the machine is booted again`(
        _ seconds: Double
    ) async throws {
        let disk = DiskFixture()
        var fields = fresh
        // The server's clock is right.
        if seconds > 0 { fields.set(.date, HTTPDate.format(disk.clock.now + .seconds(seconds))) }
        let origin = Origin(reply(fields))
        func stage(boot: String) throws -> CacheStage {
            let clock = disk.clock
            let source = StampSource(bootID: boot) { clock.uptime.nanoseconds / 1_000 }
            return CacheStage(origin, storage: DiskHTTPCacheStorage(try disk.store(), boot: source), clock: clock)
        }
        _ = try await stage(boot: "one").get()
        disk.clock.advance(by: .seconds(50))
        disk.clock.set(wall: disk.clock.now + .seconds(seconds))
        #expect(try await stage(boot: "one").get().source == .hit)
        disk.clock.advance(by: .seconds(9))
        let age = try await stage(boot: "one").get().fields[.age]
        #expect(age == "59")
        disk.clock.advance(by: .seconds(1))
        #expect(try await stage(boot: "one").get().source == .network)
        // Nothing is known about an earlier boot.
        disk.clock.set(wall: disk.clock.now - .seconds(1_800))
        #expect(try await stage(boot: "two").get().source == .network)
    }

    /// Fails to read contents, or refuses all changes, while it is told to.
    private final class UnreadableStorage: HTTPCacheStorage {
        private let storage = DiskHTTPCacheStorage(inMemory: 16 << 20)
        let fails = Flag()
        let refuses = Flag()

        func entries(for key: String) throws -> [HTTPCacheEntry] { try storage.entries(for: key) }

        func body(of entry: HTTPCacheEntry, for key: String) throws -> [UInt8]? {
            if fails.value { throw TransportError(.interrupted, "No descriptor is left.") }
            return try storage.body(of: entry, for: key)
        }

        func update(_ key: String, body: [UInt8]?, _ change: @Sendable (inout [HTTPCacheEntry]) -> Void) throws {
            if refuses.value { throw TransportError(.interrupted, "The disk is full.") }
            try storage.update(key, body: body, change)
        }

        func removeAll() throws {
            if refuses.value { throw TransportError(.interrupted, "The disk is full.") }
            try storage.removeAll()
        }
    }

    enum Withdrawal: CaseIterable { case change, removal, removalOfAll }

    @Test(arguments: Withdrawal.allCases)
    func `what the storage refuses to invalidate or to remove is not served, and is gone when it works again`(
        withdrawal: Withdrawal
    ) async throws {
        let storage = UnreadableStorage()
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=60", .vary: "X-Test"])), storage: storage)
        let name = FieldName.custom("X-Test")
        for who in ["a", "b"] { _ = try await stage.get([name: who]) }
        storage.refuses.set(true)
        switch withdrawal {
        case .change: _ = try await stage.get(method: .post)
        case .removal: await stage.cache.remove(url: CacheStage.url)
        case .removalOfAll: await stage.cache.removeAll()
        }
        #expect(try await stage.get([name: "a"]).source == .network)
        storage.refuses.set(false)
        #expect(try await stage.get([name: "a"]).source == .network)
        #expect(try await stage.get([name: "a"]).source == .hit)
        #expect(try await stage.get([name: "b"]).source == .network)
    }

    @Test func `a response whose content cannot be read for a moment stays`() async throws {
        let storage = UnreadableStorage()
        let stage = CacheStage(Origin(reply(fresh)), storage: storage)
        _ = try await stage.get()
        storage.fails.set(true)
        stage.origin.answer { _, _ throws(TransportError) in throw TransportError(.unreachable, "away") }
        await #expect(throws: TransportError.self) { try await stage.get() }
        #expect(stage.failures.count > 0)
        storage.fails.set(false)
        #expect(try await stage.get().source == .hit)
    }

    @Test func `what is on disk is there for the next process, and a 304 rewrites no content`() async throws {
        let disk = DiskFixture()
        let body = String(repeating: "x", count: 100_000)
        do {
            let stage = CacheStage(Origin(reply(fresh, body)), storage: DiskHTTPCacheStorage(try disk.store()))
            _ = try await stage.get()
        }
        let stage = CacheStage(Origin(reply(fresh, "", status: 304)), storage: DiskHTTPCacheStorage(try disk.store()))
        #expect(try await stage.get().source == .hit)
        stage.clock.advance(by: .seconds(100))
        let renewed = try await stage.get()
        #expect(renewed.source == .revalidated && renewed.text == body)
        // The log has the renewed fields, and not the content again.
        #expect(disk.directory.bytes("store.sqlite-wal").count < body.utf8.count)
        await stage.cache.removeAll()
    }

    @Test func `no-store, tokens and fields that are removed never touch the disk`() async throws {
        let disk = DiskFixture()
        let stage = CacheStage(Origin(), storage: DiskHTTPCacheStorage(try disk.store())) { configuration in
            configuration.correctFields = { fields, _ in fields.remove(.setCookie) }
        }
        stage.origin.answer { _, _ in reply([.cacheControl: "no-store, max-age=60"], "SECRET-BODY") }
        _ = try await stage.get()
        stage.origin.answer { _, _ in reply([.cacheControl: "max-age=60"], "SECRET-ANSWER") }
        _ = try await stage.get([.cacheControl: "no-store"])
        stage.origin.answer { _, _ in
            reply([.cacheControl: "max-age=60", .setCookie: "SECRET-COOKIE", .vary: "Cookie"], "plain")
        }
        _ = try await stage.get([.authorization: "SECRET-TOKEN", .cookie: "SECRET-CRUMB"])
        let all = disk.directory.files.flatMap { disk.directory.bytes($0) }
        let text = String(decoding: all, as: UTF8.self)
        #expect(text.contains("plain") && !text.contains("SECRET"))
    }

    @Test(arguments: Kind.allCases)
    func `content that was lost is a miss`(kind: Kind) async throws {
        let disk = DiskFixture()
        let losing = LosingStorage(try storage(kind, disk))
        let stage = CacheStage(Origin(reply(fresh, "a")), storage: losing)
        _ = try await stage.get()
        losing.lose()
        #expect(try await stage.get().source == .network)
        #expect(!stage.origin.requests[1].fields.contains(.ifNoneMatch))
        #expect(try await stage.get().source == .hit)
        stage.clock.advance(by: .seconds(60))
        stage.origin.answer { [fresh] request, _ in
            request.fields.contains(.ifNoneMatch) ? reply(fresh, "", status: 304) : reply(fresh, "again")
        }
        // Between the question and the answer, too.
        losing.lose()
        let response = try await stage.get()
        #expect(response.source == .network && response.text == "again")
    }

    @Test func `a storage that fails is told of, and the reply reaches its caller all the same`() async throws {
        let stage = CacheStage(Origin(reply(fresh)), storage: FailingStorage())
        for _ in 0..<3 { #expect(try await stage.get().text == "content") }
        _ = try await stage.get(method: .post)
        await stage.cache.removeAll()
        await stage.cache.remove(url: CacheStage.url)
        #expect(stage.failures.count >= 8)
    }

    @Test(arguments: [KillableStore.Failure.full, .inputOutput, .readOnly, nil])
    func `a disk that fails or dies at any step loses no reply, and nothing half is served`(
        failure: KillableStore.Failure?
    ) async throws {
        for step in 1..<40 {
            let disk = DiskFixture()
            let killable = KillableStore(disk.configuration())
            let old = DiskHTTPCacheStorage(try killable.store())
            if let failure { killable.fail(failure, atStep: step) } else { killable.kill(atStep: step, halfWay: true) }
            let terms: Fields = [.cacheControl: "max-age=60", .etag: "\"1\""]
            let stage = CacheStage(Origin(reply(terms, "whole")), storage: old)
            for _ in 0..<3 { #expect(try await stage.get().text == "whole", "step \(step)") }
            stage.clock.advance(by: .seconds(100))
            stage.origin.answer { request, _ in
                request.fields.contains(.ifNoneMatch) ? reply(terms, "", status: 304) : reply(terms, "whole")
            }
            #expect(try await stage.get().text == "whole", "step \(step)")
            let next = CacheStage(stage.origin, storage: DiskHTTPCacheStorage(try killable.reopen()))
            for _ in 0..<2 { #expect(try await next.get().text == "whole", "step \(step)") }
            #expect(next.failures.count == 0)
            killable.abandon()
        }
    }

    @Test func `a directory that vanishes costs the cache and no reply`() async throws {
        let disk = DiskFixture()
        let stage = CacheStage(Origin(reply(fresh)), storage: DiskHTTPCacheStorage(try disk.store()))
        _ = try await stage.get()
        try FileManager.default.removeItem(atPath: disk.directory.path)
        for _ in 0..<3 { #expect(try await stage.get().text == "content") }
    }

    @Test func `memory is bounded by bytes`() async throws {
        let memory = DiskHTTPCacheStorage(inMemory: 100_000)
        let stage = CacheStage(Origin(reply(fresh, String(repeating: "x", count: 10_000))), storage: memory) {
            $0.onStorageFailure = { Issue.record("\($0)") }
        }
        for number in 0..<50 { _ = try await stage.get(url: "http://origin.test/\(number)") }
        let bytes = try memory.store.statistics().bytes
        #expect(bytes <= 100_000 && bytes > 50_000)
        // One beyond the budget is not stored, and ends what it replaces.
        stage.origin.answer { [fresh] _, _ in reply(fresh, String(repeating: "x", count: 200_000)) }
        let last = "http://origin.test/49"
        #expect(try await stage.get(url: last).source == .hit)
        _ = try await stage.get([.cacheControl: "no-cache"], url: last)
        #expect(try await stage.get(url: last).source == .network)
        #expect(try memory.store.statistics().bytes <= 100_000)
    }

    @Test func `many writers of one URL lose nothing of each other`() async throws {
        for kind in Kind.allCases {
            let disk = DiskFixture()
            let name = FieldName.custom("X-Test")
            let stage = CacheStage(
                Origin(reply([.cacheControl: "max-age=60", .vary: "X-Test"])),
                storage: try storage(kind, disk)
            )
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<12 { group.addTask { _ = try await stage.get([name: "\(number)"]) } }
                try await group.waitForAll()
            }
            for number in 0..<12 { #expect(try await stage.get([name: "\(number)"]).source == .hit, "\(kind)") }
        }
    }

    @Test func `what another version wrote is a miss`() {
        #expect(HTTPCacheEntry.decode(Array("{\"version\":1,\"entries\":[]}".utf8)) == nil)
        #expect(HTTPCacheEntry.decode([]) == nil)
        #expect(HTTPCacheEntry.decode(Array("{\"version\":1,\"entries\":[{}]}".utf8)) == nil)
        #expect(HTTPCacheEntry.decode(HTTPCacheEntry.encode([])) == [])
    }
}

/// A storage that can be made to lose all content while it keeps what it knows of it.
private final class LosingStorage: HTTPCacheStorage {
    private let storage: any HTTPCacheStorage
    private let lost = Mutex(false)

    init(_ storage: any HTTPCacheStorage) { self.storage = storage }

    func lose() { lost.withLock { $0 = true } }

    func entries(for key: String) throws -> [HTTPCacheEntry] { try storage.entries(for: key) }

    func body(of entry: HTTPCacheEntry, for key: String) throws -> [UInt8]? {
        lost.withLock { $0 } ? nil : try storage.body(of: entry, for: key)
    }

    func update(_ key: String, body: [UInt8]?, _ change: @Sendable (inout [HTTPCacheEntry]) -> Void) throws {
        if body != nil { lost.withLock { $0 = false } }
        try storage.update(key, body: body, change)
    }

    func removeAll() throws { try storage.removeAll() }
}

/// A storage that can do nothing.
private struct FailingStorage: HTTPCacheStorage {
    struct Failure: Error {}

    func entries(for key: String) throws -> [HTTPCacheEntry] { throw Failure() }
    func body(of entry: HTTPCacheEntry, for key: String) throws -> [UInt8]? { throw Failure() }
    func update(_ key: String, body: [UInt8]?, _ change: @Sendable (inout [HTTPCacheEntry]) -> Void) throws {
        throw Failure()
    }
    func removeAll() throws { throw Failure() }
}
