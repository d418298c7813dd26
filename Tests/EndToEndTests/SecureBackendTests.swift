import Larder
import LarderHTTP
import LarderTLS
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import LarderDemo
@testable import LarderServer

@Suite("https, end to end", .oneMinute)
struct SecureBackendTests {
    private func start(_ certificates: ServerCertificates = .temporary) throws -> MockBackend {
        var configuration = MockBackend.Configuration()
        configuration.certificates = certificates
        return try MockBackend.startSmall(configuration)
    }

    private func settings(_ backend: MockBackend) -> TLSSettings {
        var settings = TLSSettings()
        settings.roots = .only(Array((backend.authorityPEM ?? "").utf8))
        return settings
    }

    private func transport(_ backend: MockBackend) -> SocketTransport {
        var configuration = SocketTransport.Configuration()
        configuration.tls = settings(backend)
        return SocketTransport(configuration, clock: ManualClock())
    }

    private func code(_ body: () async throws(TransportError) -> Void) async -> TransportError? {
        do throws(TransportError) {
            try await body()
            return nil
        } catch { return error }
    }

    @Test func `https and http are served on one port with the same replies`() async throws {
        let backend = try start()
        let transport = transport(backend)
        let secure = try #require(backend.secureURL)
        for path in ["/v1/feed?limit=3", "/v1/feed?limit=3", "/v1/nothing", "/openapi.json"] {
            let encrypted = try await transport.send(TransportRequest(url: secure + path))
            let plain = try await transport.send(TransportRequest(url: backend.url + path))
            #expect(encrypted.status == plain.status && encrypted.body == plain.body, "\(path)")
        }
        let localhost = secure.replacing("127.0.0.1", with: "localhost")
        #expect(try await transport.send(TransportRequest(url: localhost + "/healthz")).status == .ok)
        await backend.stop()
    }

    @Test func `requests and replies of any size pass`() async throws {
        let backend = try start()
        let transport = transport(backend)
        let secure = try #require(backend.secureURL)
        let text = String(repeating: "0123456789", count: 50_000)
        var canned = CannedReply(status: 200)
        canned.body = text
        canned.contentType = "text/plain"
        try backend.main.set(Fault(.respond(canned), when: FaultMatch("GET", "/v1/feed")))
        let reply = try await transport.send(TransportRequest(url: secure + "/v1/feed"))
        #expect(reply.body == Array(text.utf8))
        let body = Array("{\"text\":\"\(text)\"}".utf8)
        let echoed = try await transport.send(
            TransportRequest(
                method: .post,
                url: secure + "/_larder/echo",
                fields: [.contentType: "application/json"],
                body: body
            )
        )
        #expect(echoed.status == .ok && echoed.body.count > body.count)
        await backend.stop()
    }

    @Test func `many connections at once and one after the other are served`() async throws {
        let backend = try start()
        let transport = transport(backend)
        let secure = try #require(backend.secureURL)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 1...40 {
                group.addTask {
                    try await transport.send(TransportRequest(url: secure + "/v1/feed?limit=\(number)")).status.code
                }
            }
            for try await code in group { #expect(code == 200) }
        }
        await backend.stop()
    }

    @Test func `live changes arrive over wss and over an encrypted event stream`() async throws {
        let backend = try start()
        let secure = try #require(backend.secureURL)
        let sockets = transport(backend).webSockets()
        let socket = try await sockets.connect(
            "wss" + secure.dropFirst(5) + "/v1/live",
            subprotocols: ["larder.live.v1"]
        )
        guard case .text(let hello)? = try await socket.receive() else {
            Issue.record("no text arrived")
            return
        }
        #expect(hello.contains("\"hello\""))
        let events = try await EventStreamClient(transport(backend), clock: ManualClock()).open(
            secure + "/v1/live/events"
        )
        #expect(try await events.receive()?.type == "hello")
        backend.main.perform(ScriptedAction("POST", "/v1/posts", as: "ana", body: "{\"text\":\"one\"}"))
        guard case .text(let change)? = try await socket.receive() else {
            Issue.record("no change arrived")
            return
        }
        #expect(change.contains("\"one\""))
        #expect(try await events.receive()?.data.contains("\"one\"") == true)
        #expect(await socket.close()?.code == 1_000)
        await backend.stop()
    }

    @Test(arguments: FaultAction.WrongCertificate.allCases)
    func `a fault of the certificate reaches new connections, also of a client with a session`(
        _ fault: FaultAction.WrongCertificate
    ) async throws {
        let backend = try start()
        let transport = transport(backend)
        let request = TransportRequest(url: try #require(backend.secureURL) + "/v1/feed")
        #expect(try await transport.send(request).status == .ok)
        try backend.main.set(Fault(.certificate(fault)), Fault(.staleConnections))
        let error = try #require(
            await code { () async throws(TransportError) in _ = try await transport.send(request) }
        )
        // The connection that the client had kept is stale: whether its request arrived is unknown.
        #expect(error.code == .interrupted && error.cause?.isAboutCertificate == true, "\(error)")
        backend.main.removeFaults()
        #expect(try await transport.send(request).status == .ok)
        await backend.stop()
    }

    @Test(
        arguments: [
            FaultAction.truncate(.byte(20)), .truncate(.insideChunkHeader), .malformedChunk, .loseReply(.close), .reset,
            .close,
        ]
    )
    func `an interrupted reply is an error, never a partial body`(_ action: FaultAction) async throws {
        let backend = try start()
        try backend.main.set(Fault(action, when: FaultMatch("GET", "/v1/feed")))
        let transport = transport(backend)
        let request = TransportRequest(url: try #require(backend.secureURL) + "/v1/feed")
        #expect(
            await code { () async throws(TransportError) in _ = try await transport.send(request) }?.code
                == .interrupted
        )
        await backend.stop()
    }

    @Test func `a client learns why a handshake has failed, and that nothing was sent`() async throws {
        let backend = try start()
        let clock = ManualClock()
        var configuration = SocketTransport.Configuration()
        configuration.tls = settings(backend)
        let transport = SocketTransport(configuration, clock: clock)
        let request = TransportRequest(method: .post, url: try #require(backend.secureURL) + "/v1/posts")
        for action in [FaultAction.close, .reset] {
            for byte in [0, 1, 200] {
                try backend.main.set(Fault(id: "f", action, stage: .handshake, at: byte))
                let error = await code { () async throws(TransportError) in _ = try await transport.send(request) }
                #expect(error?.code == .unreachable, "\(action) at \(byte): \(error.map { "\($0)" } ?? "none")")
            }
        }
        try backend.main.set(Fault(id: "f", .never, stage: .handshake, at: 100))
        let stalled = Task { await code { () async throws(TransportError) in _ = try await transport.send(request) } }
        await reached { backend.main.faults.first?.applications == 1 }
        clock.advance(by: configuration.connectTimeout)
        let error = await stalled.value
        #expect(error?.code == .unreachable, "\(error.map { "\($0)" } ?? "none")")
        #expect(await backend.main.journal().isEmpty)
        await backend.stop()
    }

    @Test func `a complete reply is accepted without close_notify, and one that is cut is not`() async throws {
        let backend = try start()
        let transport = transport(backend)
        let request = TransportRequest(url: try #require(backend.secureURL) + "/v1/feed")
        try backend.main.set(
            Fault(id: "n", .noCloseNotify),
            Fault(id: "c", .close, when: FaultMatch("GET", "/v1/feed"), stage: .end)
        )
        #expect(try await transport.send(request).status == .ok)
        try backend.main.set(Fault(id: "c", .close, when: FaultMatch("GET", "/v1/feed"), stage: .body, at: 100))
        let error = await code { () async throws(TransportError) in _ = try await transport.send(request) }
        #expect(error?.code == .interrupted, "\(error.map { "\($0)" } ?? "none")")
        await backend.stop()
    }

    private func proxy(before backend: MockBackend, roots: TLSSettings.Roots) throws -> MockBackend {
        var configuration = MockBackend.Configuration()
        configuration.certificates = .temporary
        let origin = try #require(backend.secureURL)
        configuration.origin = .server(try #require(HTTPURL(origin)))
        configuration.proxy.tls.roots = roots
        return try MockBackend.start(.empty, configuration)
    }

    @Test func `a proxy stands before a server with https, for requests, redirects and live channels`() async throws {
        let backend = try start()
        let proxy = try proxy(before: backend, roots: .only(Array(try #require(backend.authorityPEM).utf8)))
        let transport = transport(proxy)
        let text = String(repeating: "0123456789", count: 60_000)
        for url in [proxy.url, try #require(proxy.secureURL)] {
            let direct = try await transport.send(TransportRequest(url: backend.url + "/v1/feed?limit=3"))
            let passed = try await transport.send(TransportRequest(url: url + "/v1/feed?limit=3"))
            #expect(passed.status == .ok && passed.body == direct.body)
            let echoed = try await transport.send(
                TransportRequest(
                    method: .post,
                    url: url + "/v1/posts",
                    fields: [.contentType: "application/json", .authorization: "Bearer dev-ana"],
                    body: Array("{\"text\":\"\(text.prefix(200))\"}".utf8)
                )
            )
            #expect(echoed.status == .created)
        }
        var canned = CannedReply(status: 302)
        canned.headers = ["Location": try #require(backend.secureURL) + "/v1/feed?limit=1"]
        try backend.main.set(Fault(.respond(canned), when: FaultMatch("GET", "/v1/profiles/user_1")))
        var request = TransportRequest(url: try #require(proxy.secureURL) + "/v1/profiles/user_1")
        request.followsRedirects = false
        let redirect = try await transport.send(request)
        #expect(redirect.fields[.location] == proxy.secureURL.map { $0 + "/v1/feed?limit=1" })

        let sockets = transport.webSockets()
        let socket = try await sockets.connect("wss" + (try #require(proxy.secureURL)).dropFirst(5) + "/v1/live")
        guard case .text(let hello)? = try await socket.receive() else {
            Issue.record("no text arrived")
            return
        }
        #expect(hello.contains("\"hello\""))
        _ = await socket.close()
        await proxy.stop()
        await backend.stop()
    }

    @Test func `a proxy does not send to a server whose certificate it does not trust`() async throws {
        let backend = try start()
        let foreign = try start()
        let proxy = try proxy(before: backend, roots: .only(Array(try #require(foreign.authorityPEM).utf8)))
        let reply = try await transport(proxy).send(TransportRequest(url: proxy.url + "/v1/feed"))
        #expect(reply.status == .badGateway, "\(reply.status)")
        #expect(String(decoding: reply.body, as: UTF8.self).contains("authority that is not trusted"))
        #expect(await backend.main.journal().isEmpty)
        for each in [proxy, backend, foreign] { await each.stop() }
    }

    @Test func `a development authority stays the same, and its key is private`() async throws {
        let scratch = try ScratchDirectory()
        let directory = scratch.path + "/data/larder"
        let first = try start(.development(directory: directory))
        let second = try start(.development(directory: directory))
        let pem = try #require(first.authorityPEM)
        #expect(pem == second.authorityPEM)
        #expect(try scratch.mode("data/larder/authority.key") == 0o600)
        for backend in [first, second] {
            let reply = try await transport(first).send(
                TransportRequest(url: try #require(backend.secureURL) + "/healthz")
            )
            #expect(reply.status == .ok)
        }
        await first.stop()
        await second.stop()
    }

    @Test func `certificates from files are served, and files that cannot be used are named`() async throws {
        let scratch = try ScratchDirectory()
        #expect(throws: TLSError.self) {
            try start(.files(certificate: scratch.path + "/none.pem", key: scratch.path + "/none.key"))
        }
    }
}
