import Foundation
import LarderHTTP
import LarderHTTPCache
import LarderImages
import LarderResources
import LarderStorage
import LarderTelemetry
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Larder

/// Searches every file of a client for a secret, after each kind of write.
@Suite("Secrets on disk", .oneMinute)
struct SecretSearchTests {
    enum Kind: String, CaseIterable {
        case entity, list, request, operation, awaited, rejection, tokens, renewal, image, partialImage, response
        case evicted, removed, validator, token, timeline
    }

    private static let secret = "the-secret-of-this-test"
    /// A picture whose comment is the secret.
    private static let picture =
        "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAH3RFWHRDb21tZW50AHRoZS1zZWNyZXQtb2YtdGhpcy10ZXN0hbqb"
        + "3QAAABZJREFUeJxjSExKTklNY0jPyMzKzgEAIQ8Ezy17gTgAAAAASUVORK5CYII="
    private let directory = StoreDirectory()
    private let clock = ManualClock()
    private let gate = TransportGate()

    private func client(_ transform: (any DiskStore.PayloadTransform)?) async throws -> APIClient {
        let gate = gate
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            switch request.url {
            case "http://server/picture":
                let fields: Fields = [.contentType: "image/png", .cacheControl: "max-age=600"]
                return ScriptedTransport.Reply(
                    fields: fields,
                    [.bytes(Array(Data(base64Encoded: Self.picture) ?? Data()))]
                )
            case "http://server/part":
                let fields: Fields = [.contentType: "image/png", .etag: "\"1\"", .contentLength: "400000"]
                let bytes = Array(repeating: Array("\(Self.secret) ".utf8), count: 8_000).flatMap(\.self)
                return ScriptedTransport.Reply(fields: fields, [.bytes(bytes), .gate(gate), .silence])
            default:
                let fields: Fields = [
                    .contentType: "text/plain", .cacheControl: "max-age=600", .etag: "\"\(Self.secret)\"",
                ]
                return .text(Self.secret, fields: fields)
            }
        }
        try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: true)
        var configuration = APIClient.Configuration(transport: transport)
        var store = DiskStore.Configuration(directory: directory.path + "/account", clock: clock)
        store.bytesMaximum = 1 << 20
        configuration.cache = CacheConfiguration(.disk(store))
        configuration.transform = transform
        configuration.cache.wallClock = clock
        configuration.cache.monotonicClock = clock
        configuration.services = .none
        configuration.services.telemetry = .given(
            Telemetry(
                recorder: try FlightRecorder(path: directory.path + "/flight-\(transform == nil)"),
                wall: clock,
                monotonic: clock
            )
        )
        configuration.session = BearerSession.Endpoints(
            renew: { _, _ throws(LarderError) in Self.grant(Self.secret) },
            endsSession: { _ in false }
        )
        return try await APIClient(server: "http://server", account: "ana", directory: directory.path, configuration)
    }

    private static func grant(_ token: String) -> BearerSession.Grant {
        BearerSession.Grant(accessToken: token, refreshToken: token, userID: "ana", lifetime: .seconds(60))
    }

    /// A store of the HTTP cache.
    private func store(of client: APIClient) throws -> DiskStore {
        try #require(try APIClient.store("http", nil, client.cache.configuration, in: nil))
    }

    private func write(_ kind: Kind, _ client: APIClient) async throws {
        let cache = client.cache
        let secret = Self.secret
        switch kind {
        case .entity: try await cache.update { $0.put(Note(id: "1", text: secret)) }
        case .list:
            let list = DiskQuery(
                QueryKey("list"),
                ids: [],
                isComplete: false,
                fetchedAt: clock.now,
                expiresAt: clock.now + .seconds(60),
                details: Array(secret.utf8)
            )
            _ = try cache.disk?.write { transaction in try transaction.put(list) }
        case .request: _ = try await cache.request("key", as: String.self, lifetime: .seconds(60)) { secret }
        case .operation, .rejection:
            let operation = WriteBehind<String, Bool>("send", scope: { $0 }, changes: { _, _ in }) { attempts in
                attempts.map { _ in
                    kind == .rejection
                        ? .rejected(LarderError(.rejected, secret)) : .retry(LarderError(.offline, secret))
                }
            }
            cache.outbox.register(operation)
            var rejections = cache.outbox.rejections.makeAsyncIterator()
            try cache.enqueue(secret, operation)
            guard kind == .rejection else { return }
            while let rejected = await rejections.next(isolation: nil), rejected.isEmpty {}
        case .awaited:
            let order = WriteThrough<String, Bool>("order", scope: { $0 }) { _ in .retry(LarderError(.offline, secret))
            }
            cache.outbox.register(order)
            _ = try? await cache.commit(secret, order)
            #expect(cache.outbox.entries.count == 1)
        case .tokens: try await client.session.use(token: secret, userID: secret)
        case .renewal:
            try await client.session.signIn { _ throws(LarderError) in Self.grant("first") }
            clock.advance(by: .seconds(120))
            #expect(try await client.session.accessToken() == secret)
        case .image:
            _ = try await client.images.image(for: ImageRequest(url: "http://server/picture"))
        case .partialImage:
            let loading = Task { try await client.images.image(for: ImageRequest(url: "http://server/part")) }
            await gate.waitForHeld()
            loading.cancel()
            _ = await loading.result
        case .response:
            let store = try store(of: client)
            var configuration = HTTPCache.Configuration(storage: DiskHTTPCacheStorage(store), clock: clock)
            configuration.onStorageFailure = { Issue.record($0) }
            let http = HTTPCache(client.source.transport, configuration)
            let url = "http://server/text?\(secret)=\(secret)"
            _ = try await http.send(TransportRequest(url: url))
            #expect(try await http.response(for: TransportRequest(url: url)).source == .hit)
            #expect(try DiskHTTPCacheStorage(store).entries(for: url).count == 1)
        case .evicted:
            try await cache.update { $0.put(Note(id: "1", text: secret)) }
            for number in 2..<40 {
                clock.advance(by: .seconds(601))
                try await cache.update { $0.put(Note(id: "\(number)", text: String(repeating: "x", count: 50_000))) }
            }
            #expect(try cache.disk?.entity(Note.key("1")) == nil)
        case .removed:
            try await cache.update { $0.put(Note(id: "1", text: secret)) }
            try await cache.update { $0.remove(Note.key("1")) }
        case .validator:
            let note = Resource<Note>.entity("1") { _ in .value(Note(id: "1", text: ""), validator: secret) }
            _ = try await cache.value(note)
            let list = Resource<EntityList<Note>>.list("tagged", of: Note.self) { _ in
                .value(EntityList([]), validator: secret)
            }
            _ = try await cache.value(list)
            for stored in [cache.stored(note)?.validator, cache.stored(list)?.validator] { #expect(stored == secret) }
        case .token: try await cache.update { $0.setToken(secret, for: "feed") }
        case .timeline: try await writeTimeline(cache)
        }
    }

    /// A timeline of three pages, of which the second begins after a gap. The secret is the cursor and the validator of each.
    private func writeTimeline(_ cache: LarderCache) async throws {
        let secret = Self.secret
        let newest = Mutex(10)
        let pages = PagedResource<Note>("notes", pageSize: 2) { request in
            let first = request.cursor.flatMap { Int($0.split(separator: " ").last ?? "") } ?? newest.withLock { $0 }
            let items = [first, first - 1].map { Note(id: "\($0)", text: "") }
            return .value(EntityList(items, nextCursor: "\(secret) \(first - 2)"), validator: secret)
        }
        let timeline = cache.timeline(pages)
        try await timeline.refresh()
        _ = try await timeline.loadOlder()
        newest.withLock { $0 = 20 }
        try await timeline.refresh()
        let shown = try await timeline.snapshot()
        #expect(shown.items.map(\.id) == ["20", "19", "10", "9", "8", "7"])
        cache.trimMemory(toBytes: 0)
        // What was encoded is decoded.
        let again = try await cache.timeline(pages, .cacheOnly).snapshot()
        #expect(again.items == shown.items)
        newest.withLock { $0 = 16 }
        _ = try await timeline.loadOlder()
        #expect(try await timeline.snapshot().items.last?.id == "5")
    }

    @Test(arguments: Kind.allCases)
    func `under a transform no file has the secret, and without one a file has it`(_ kind: Kind) async throws {
        let needle = Array(Self.secret.utf8)
        do {
            let client = try await client(
                DiskStore.EncryptingTransform(keys: [DiskStore.EncryptingTransform.makeKey()])
            )
            try await write(kind, client)
            #expect(directory.files(with: needle) == [])
            #expect(directory.files.contains { $0.hasPrefix("flight-") })
            try store(of: client).erase()
            try await client.signOut()
        }
        let plain = try await client(nil)
        try await write(kind, plain)
        #expect(!directory.files(with: needle).isEmpty)
        try store(of: plain).erase()
        try await plain.signOut()
        #expect(directory.files(with: needle) == [])
    }
}
