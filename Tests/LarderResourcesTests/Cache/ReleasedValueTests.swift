import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderMemory
@testable import LarderResources

/// A part of a value that tells when it is released.
private final class Bell: Codable, Sendable, Equatable {
    static let onRelease = Mutex<(@Sendable () -> Void)?>(nil)

    init() {}

    init(from decoder: any Decoder) throws {}

    func encode(to encoder: any Encoder) throws {}

    deinit { Self.onRelease.withLock { $0 }?() }

    static func == (left: Bell, right: Bell) -> Bool { true }
}

private struct Loud: CacheEntity {
    static let entityType = "loud"
    var id = "1"
    var text: String
    var bell = Bell()

    init(_ text: String) { self.text = text }
}

/// Values of the app are released while nothing of the cache is locked: the end of one may use the cache.
@Suite("Cache: the release of values", .oneMinute, .serialized)
struct ReleasedValueTests {
    private let scene = CacheScene()
    private let releases = Releases()

    /// What was locked when values were released.
    private final class Releases: Sendable {
        let count = Mutex(0)
        let locked = Mutex<Set<String>>([])

        func listen(_ cache: LarderCache) {
            let core = cache.core
            Bell.onRelease.withLock { handler in
                handler = { [weak core, self] in
                    guard let core else { return }
                    count.withLock { $0 += 1 }
                    var found: Set<String> = []
                    if core.memory.withLockIfAvailable({ _ in true }) == nil { found.insert("memory") }
                    if core.commits.isHeldByCaller { found.insert("commits") }
                    if core.outboxCommits.isHeldByCaller { found.insert("outbox") }
                    if core.entities.state.withLockIfAvailable({ _ in true }) == nil { found.insert("entities") }
                    for node in core.nodes.all {
                        guard let node = node as? Node<Loud> else { continue }
                        if node.state.withLockIfAvailable({ _ in true }) == nil { found.insert("node") }
                    }
                    locked.withLock { $0.formUnion(found) }
                }
            }
        }

        func stop() { Bell.onRelease.withLock { $0 = nil } }
    }

    private func loud(_ source: ScriptedSource<Loud>) -> Resource<Loud> {
        .entity("1", freshness: .timeToLive(.seconds(60))) { try await source.fetch($0) }
    }

    /// Does something with an observed value, and expects that values are released, and with what locked.
    private func expectReleases(
        _ body: (LarderCache, Resource<Loud>) async throws -> Void
    ) async throws {
        let cache = try scene.cache()
        let resource = loud(ScriptedSource())
        try await cache.put(Loud("old"), for: resource)
        let watching = Task { for await _ in cache.snapshots(resource, .cacheOnly) {} }
        await rest()
        releases.listen(cache)
        try await body(cache, resource)
        await rest()
        releases.stop()
        #expect(releases.count.withLock { $0 } > 0)
        #expect(releases.locked.withLock { $0 } == [])
        watching.cancel()
    }

    @Test func `values that are replaced are released without locks`() async throws {
        try await expectReleases { cache, resource in
            for round in 0..<4 { try await cache.put(Loud("new \(round)"), for: resource) }
        }
    }

    @Test func `values that are removed or trimmed are released without locks`() async throws {
        try await expectReleases { cache, resource in
            try await cache.put(Loud("new"), for: resource)
            cache.trimMemory(toBytes: 0)
            try await cache.remove(resource)
        }
    }

    @Test func `values of a cache that is closed are released without locks`() async throws {
        try await expectReleases { cache, resource in
            try await cache.put(Loud("new"), for: resource)
            cache.close()
        }
    }

    @Test func `values that another process has replaced are released without locks`() async throws {
        let other = try scene.cache()
        try await expectReleases { cache, resource in
            try await other.put(Loud("theirs"), for: resource)
            scene.clock.advance(by: .seconds(1))
            _ = cache.stored(resource)
        }
    }
}
