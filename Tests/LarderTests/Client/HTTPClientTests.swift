import FileFaults
import Foundation
import LarderEvents
import LarderHTTP
import LarderHTTPCache
import LarderResources
import LarderTelemetry
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Larder

@Suite("Client: any request through the HTTP cache", .oneMinute)
struct HTTPClientTests {
    private let fixture = ClientFixture()
    private var clock: ManualClock { fixture.scene.clock }

    /// A server whose documents are fresh for a minute and have a tag; it accepts the token `token`.
    private func server(token: @escaping @Sendable () -> String = { "1" }) -> ScriptedTransport {
        ScriptedTransport { request, number throws(TransportError) in
            if request.url.hasSuffix("/token") { return ClientFixture.json(#"{"access": "2"}"#) }
            let isOwn = request.url.hasPrefix("http://server/")
            if isOwn, let sent = request.fields[.authorization], sent != "Bearer \(token())" {
                return ClientFixture.json("{}", status: .unauthorized)
            }
            if request.fields[.ifNoneMatch] == "\"1\"" {
                return .text("", status: .notModified, fields: [.cacheControl: "max-age=60", .etag: "\"1\""])
            }
            return .text(
                "text \(number)",
                fields: [.cacheControl: "max-age=60", .etag: "\"1\"", .vary: "Authorization"]
            )
        }
    }

    private func signedIn(_ transport: ScriptedTransport) async throws -> APIClient {
        let client = try await fixture.client(transport)
        try await client.session.signIn { _ throws(LarderError) in ClientFixture.grant("1") }
        return client
    }

    @Test func `a renewed token finds what was stored under the one before`() async throws {
        let isRotated = Flag()
        let transport = server { isRotated.isSet ? "2" : "1" }
        let client = try await signedIn(transport)
        #expect(try await client.http.document("/help").source == .network)
        #expect(transport.requests.last?.fields[.authorization] == "Bearer 1")
        isRotated.set()
        #expect(try await client.http.document("/help").source == .hit)
        #expect(transport.requests.count == 1)
        clock.advance(by: .seconds(61))
        // Rejected, renewed, sent again, and confirmed.
        #expect(try await client.http.document("/help").source == .revalidated)
        #expect(transport.requests.map { $0.fields[.authorization] } == ["Bearer 1", "Bearer 1", nil, "Bearer 2"])
        #expect(transport.requests.last?.fields[.ifNoneMatch] == "\"1\"")
        #expect(
            transport.requests.allSatisfy { request in
                !request.fields.contains { $0.name.canonical == "larder-account" }
            }
        )
    }

    @Test func `nobody gets what is stored for a user, after a sign-out of the session`() async throws {
        let transport = server()
        let client = try await signedIn(transport)
        _ = try await client.http.document("/help")
        await client.session.signOut()
        #expect(try await client.http.document("/help").source != .hit)
        try await client.session.signIn { _ throws(LarderError) in ClientFixture.grant("1") }
        #expect(try await client.http.document("/help").source == .hit)
    }

    @Test func `a redirect from another origin gets no credentials, because its reply is stored for everybody`()
        async throws
    {
        let transport = ScriptedTransport { request, _ in
            guard request.url == "http://other/a" else {
                return ClientFixture.json("\"private\"", [.cacheControl: "max-age=60"])
            }
            return ClientFixture.json("", status: Status(code: 302), [.location: "http://server/me"])
        }
        let client = try await signedIn(transport)
        _ = try await client.http.send(TransportRequest(url: "http://other/a"))
        #expect(transport.requests.map(\.url) == ["http://other/a", "http://server/me"])
        #expect(transport.requests.allSatisfy { $0.fields[.authorization] == nil })
    }

    @Test func `another origin gets no credentials, and the caller's own are kept`() async throws {
        let transport = server()
        let client = try await signedIn(transport)
        _ = try await client.http.document("http://other/a")
        _ = try await client.http.send(TransportRequest(url: "http://other/b", fields: [.authorization: "Basic x"]))
        #expect(transport.requests.map { $0.fields[.authorization] } == [nil, "Basic x"])
    }

    @Test func `a request of the source to another origin gets no credentials, and the caller's own are kept`()
        async throws
    {
        let transport = ScriptedTransport { _, _ in ClientFixture.json("{}", status: .unauthorized) }
        let client = try await signedIn(transport)
        let own: Fields = [.authorization: "Basic x"]
        for (url, fields) in [("http://other/a", Fields()), ("http://other/b", own), ("http://server/c", own)] {
            #expect(try await client.source.send(TransportRequest(url: url, fields: fields)).status == .unauthorized)
        }
        await #expect(throws: LarderError.self) { try await client.source.send(.get, ".evil.example/x") }
        #expect(transport.requests.map { $0.fields[.authorization] } == [nil, "Basic x", "Basic x", nil])
        #expect(!transport.requests.contains { $0.url.hasSuffix("/token") })
    }

    /// What becomes of a change after its 401.
    enum AfterRejection: CaseIterable {
        case renewalFails, sessionEnds, repetitionFails, repetitionIsRejected
    }

    @Test(arguments: AfterRejection.allCases)
    func `a change of which a copy was lost has perhaps been made, whatever follows its 401`(
        after: AfterRejection
    ) async throws {
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            if request.url.hasSuffix("/token") {
                switch after {
                case .renewalFails: throw TransportError(.unreachable, "There is no network.")
                case .sessionEnds: return ClientFixture.json("{}", status: .badRequest)
                case .repetitionFails, .repetitionIsRejected: return ClientFixture.json(#"{"access": "2"}"#)
                }
            }
            guard request.method == .put else { return .text("text", fields: [.cacheControl: "max-age=60"]) }
            if request.fields[.authorization] == "Bearer 1" {
                LostCopies.current?.note()
            } else if after == .repetitionFails {
                throw TransportError(.unreachable, "There is no network.")
            }
            return ClientFixture.json("{}", status: .unauthorized)
        }
        let client = try await signedIn(transport)
        _ = try await client.http.document("/settings")
        let put = TransportRequest(method: .put, url: "http://server/settings")
        let error = await #expect(throws: TransportError.self) { try await client.http.send(put) }
        #expect(error?.code == .interrupted)
        #expect(try await client.http.document("/settings").source == .network)
    }

    @Test(arguments: [404, 412])
    func `a change of which a copy was lost has perhaps been made, although the next copy was rejected`(
        code: Int
    ) async throws {
        let transport = ScriptedTransport { request, _ in
            guard request.method == .put else { return .text("text", fields: [.cacheControl: "max-age=60"]) }
            LostCopies.current?.note()
            return ClientFixture.json("{}", status: Status(code: code))
        }
        let client = try await signedIn(transport)
        _ = try await client.http.document("/settings")
        let put = TransportRequest(method: .put, url: "http://server/settings")
        #expect(try await client.http.send(put).status.code == code)
        #expect(try await client.http.document("/settings").source == .network)
    }

    @Test func `a change inside a write of the outbox tells the outbox of a lost copy`() async throws {
        let transport = ScriptedTransport { _, _ throws(TransportError) in
            LostCopies.current?.note()
            throw TransportError(.unreachable, "There is no network.")
        }
        let client = try await signedIn(transport)
        let outer = LostCopies()
        await LostCopies.$current.withValue(outer) {
            let error = await #expect(throws: LarderError.self) { try await client.source.send(.put, "/settings") }
            #expect(error?.mayHaveBeenCarriedOut == true)
        }
        #expect(!outer.isEmpty)
    }

    @Test func `a body that can be read only once is sent once, also after a 401`() async throws {
        let transport = ScriptedTransport { request, _ in
            request.url.hasSuffix("/token")
                ? ClientFixture.json(#"{"access": "2"}"#) : ClientFixture.json("{}", status: .unauthorized)
        }
        let client = try await signedIn(transport)
        let content = AsyncStream<[UInt8]> { continuation in
            continuation.yield([1, 2, 3])
            continuation.finish()
        }
        var request = TransportRequest(method: .put, url: "http://server/photo")
        request.upload = RequestBody(content)
        let put = request
        let error = await #expect(throws: TransportError.self) { try await client.http.send(put) }
        #expect(error?.code == .bodyNotReplayable)
        #expect(transport.requests.count { $0.method == .put } == 1)
    }

    @Test func `without a network a stored response is given, and otherwise a typed error`() async throws {
        let transport = server()
        let client = try await signedIn(transport)
        _ = try await client.http.document("/help")
        fixture.scene.isOnline.withLock { $0 = false }
        clock.advance(by: .seconds(3_600))
        let stored = try await client.http.document("/help")
        #expect(stored.source == .stale(.offline) && String(decoding: stored.body, as: UTF8.self) == "text 1")
        let error = await #expect(throws: LarderError.self) { try await client.http.document("/other") }
        #expect(error?.code == .offline)
        let post = TransportRequest(method: .post, url: "http://server/likes")
        let unsent = await #expect(throws: TransportError.self) { try await client.http.send(post) }
        #expect(unsent?.code == .unreachable && transport.requests.count == 1)
    }

    @Test func `a status other than 2xx is an error of a document`() async throws {
        let transport = ScriptedTransport { _, _ in ClientFixture.json("{}", status: .notFound) }
        let client = try await fixture.client(transport)
        let error = await #expect(throws: LarderError.self) { try await client.http.document("/help") }
        #expect(error?.code == .rejected && error?.status == 404)
    }

    @Test func `what is stored survives a restart, in a store beside that of the resources`() async throws {
        let transport = server()
        do {
            let client = try await signedIn(transport)
            _ = try await client.http.document("/help")
            #expect(try client.cache.disk?.statistics().items == 0)
            client.close()
        }
        let client = try await fixture.client(transport)
        #expect(try await client.http.document("/help").source == .hit)
        #expect(FileManager.default.fileExists(atPath: fixture.directory + "/http/store.lock"))
        try await client.signOut()
        #expect(!FileManager.default.fileExists(atPath: fixture.directory))
    }

    @Test func `resources do not pass the HTTP cache, so that nothing is stored twice`() async throws {
        let transport = ScriptedTransport { _, _ in ClientFixture.json("\"a\"", [.cacheControl: "max-age=60"]) }
        let client = try await fixture.client(transport)
        let word = Resource<String>("word") { [source = client.source] in try await source.fetch("/word", context: $0) }
        #expect(try await client.cache.value(word) == "a")
        let storage = try #require(client.http.cache?.configuration.storage)
        #expect(try storage.entries(for: "http://server/word").isEmpty)
    }

    @Test func `telemetry counts hits, misses and confirmations of the HTTP tier`() async throws {
        let telemetry = Telemetry(wall: clock, monotonic: clock)
        let client = try await fixture.client(server()) { $0.services.telemetry = .given(telemetry) }
        for wait in [0, 0, 61] {
            clock.advance(by: .seconds(wait))
            _ = try await client.http.document("/help")
        }
        let feature = try #require(telemetry.totals.features["http"])
        #expect(feature.reads[.http]?.hits == 1 && feature.reads[.http]?.misses == 2 && feature.revalidations == 1)
    }

    @Test func `an HTTP cache of size 0 stores nothing`() async throws {
        let transport = server()
        let client = try await fixture.client(transport) { $0.httpCacheBytesMaximum = 0 }
        for _ in 0..<2 { #expect(try await client.http.document("/help").source == .network) }
        #expect(client.http.cache == nil && transport.requests.count == 2)
        #expect(!FileManager.default.fileExists(atPath: fixture.directory + "/http"))
        client.close()
        // A sign-out erases what an earlier version of the app has stored.
        let earlier = try await fixture.client(transport)
        _ = try await earlier.http.document("/help")
        earlier.close()
        #expect(FileManager.default.fileExists(atPath: fixture.directory + "/http"))
        try await fixture.client(transport) { $0.httpCacheBytesMaximum = 0 }.signOut()
        #expect(!FileManager.default.fileExists(atPath: fixture.directory))
    }

    @Test func `the app replaces the lifetime that the server states`() async throws {
        let client = try await fixture.client(server()) {
            $0.http.correctFields = { fields, url in
                if url.hasSuffix("/feed") { fields.set(.cacheControl, "max-age=3600") }
            }
        }
        for path in ["/feed", "/help"] { _ = try await client.http.document(path) }
        clock.advance(by: .seconds(61))
        #expect(try await client.http.document("/feed").source == .hit)
        #expect(try await client.http.document("/help").source == .revalidated)
        clock.advance(by: .seconds(3_540))
        #expect(try await client.http.document("/feed").source == .revalidated)
    }

    @Test func `the flag bypasses the cache, and what was stored before is not used afterwards`() async throws {
        let transport = server()
        let flags = FeatureFlags()
        func start() async throws -> APIClient {
            try await fixture.client(transport) { $0.services.flags = .given(flags) }
        }
        let client = try await start()
        _ = try await client.http.document("/help")
        client.close()
        try flags.setOverride(false, for: .httpCache)
        let off = try await start()
        #expect(try await off.http.document("/help").source == .network)
        off.close()
        try flags.setOverride(true, for: .httpCache)
        let on = try await start()
        #expect(try await on.http.document("/help").source == .network)
        #expect(try await on.http.document("/help").source == .hit)
        #expect(transport.requests.count == 3)
    }

    @Test func `a change that is under way while the cache is turned on invalidates what is stored meanwhile`()
        async throws
    {
        let gate = TransportGate()
        let transport = ScriptedTransport { request, number in
            request.method == .put
                ? ScriptedTransport.Reply.text("", status: .noContent).held(by: gate)
                : .text("text \(number)", fields: [.cacheControl: "max-age=3600"])
        }
        let flags = FeatureFlags()
        try flags.setOverride(false, for: .httpCache)
        let client = try await fixture.client(transport) { $0.services.flags = .given(flags) }
        let changing = Task { try await client.http.send(TransportRequest(method: .put, url: "http://server/help")) }
        await gate.waitForHeld()
        try flags.setOverride(true, for: .httpCache)
        await reached { client.http.isCacheOn() }
        _ = try await client.http.document("/help")
        #expect(try await client.http.document("/help").source == .hit)
        gate.open()
        _ = try await changing.value
        #expect(try await client.http.document("/help").source == .network)
    }

    @Test func `what was stored before the cache was off is removed, although that could not be noted`() async throws {
        let scene = CacheScene()
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        let cache = try LarderCache(configuration)
        let http = HTTPCache(ScriptedTransport { _, _ in .text("a", fields: [.cacheControl: "max-age=60"]) })
        let request = TransportRequest(url: "http://server/help")
        let toggle = HTTPCacheSwitch(cache)
        toggle.set(true, http)
        _ = try await http.response(for: request)
        #expect(try await http.response(for: request).source == .hit)
        killable.fail(.full, untilHealed: true)
        toggle.set(false, http)
        #expect(!toggle.isOn)
        killable.heal()
        toggle.set(true, http)
        #expect(try await http.response(for: request).source == .network)
    }

    @Test func `a sign-out erases the events that an earlier version has recorded`() async throws {
        let path = fixture.directory + "/flight.recorder"
        let recording = try await fixture.client(server()) { configuration in
            (configuration.services.telemetry, configuration.services.recorder) = (.own, .own)
        }
        recording.close()
        #expect(FileManager.default.fileExists(atPath: path))
        try await fixture.client(server()) { $0.services.telemetry = .none }.signOut()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `a transport of the app opens no WebSockets with other certificates than its own`() async throws {
        let client = try await fixture.client(server())
        await #expect { try await client.openWebSocket("/live") } throws: { error in
            ((error as? LarderError)?.cause as? WebSocketError)?.code == .invalidRequest
        }
    }

    @Test(arguments: [false, true])
    func `the flight recorder is on unless it is turned off, and readable by its owner only`(isOff: Bool) async throws {
        let path = fixture.directory + "/flight.recorder"
        let client = try await fixture.client(server()) { configuration in
            configuration.services.telemetry = .own
            configuration.services.recorder = isOff ? .none : .own
        }
        _ = try await client.http.document("/help")
        guard !isOff else { return #expect(!FileManager.default.fileExists(atPath: path)) }
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        #expect(mode == 0o600 && size == 128 << 10)
        #expect(try !FlightRecorder.records(path: path).isEmpty)
        // A second process of the account works without one.
        let second = try await fixture.client(server()) { configuration in
            configuration.services.telemetry = .own
            configuration.services.recorder = .own
        }
        _ = try await second.http.document("/help")
        second.close()
        try await client.signOut()
        #expect(!FileManager.default.fileExists(atPath: fixture.directory))
    }
}
