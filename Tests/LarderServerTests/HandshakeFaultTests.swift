import LarderCoding
import LarderHTTP
import LarderTLS
import LarderTime
import TestSupport
import Testing

@testable import LarderServer

@Suite("Faults of TLS handshakes", .oneMinute)
struct HandshakeFaultTests {
    private let stage: Stage
    private let client: TLSClient

    init() throws {
        stage = try Stage { $0.certificates = .temporary }
        client = try Self.client(of: stage.backend)
    }

    private static func client(of backend: MockBackend) throws -> TLSClient {
        var settings = TLSSettings()
        settings.roots = .only(Array(try #require(backend.authorityPEM).utf8))
        return try TLSClient(settings)
    }

    private func connect(_ host: String = "localhost") throws -> SecureClient {
        try SecureClient(port: stage.backend.port, client, host: host)
    }

    /// Why a handshake fails; nil if it does not.
    private func failure(_ host: String) async throws -> TLSError? {
        do { try await connect(host).shakeHands() } catch let error as TLSError { return error }
        return nil
    }

    private static func match(_ host: String) -> FaultMatch {
        var match = FaultMatch()
        match.host = host
        return match
    }

    @Test(arguments: FaultAction.WrongCertificate.allCases)
    func `a wrong certificate is shown to clients that name the host, and only to them`(
        _ fault: FaultAction.WrongCertificate
    )
        async throws
    {
        try stage.world.set(Fault(id: "f", .certificate(fault), when: Self.match("phone.localhost")))
        #expect(try await failure("phone.localhost")?.isAboutCertificate == true)
        #expect(try await failure("tablet.localhost") == nil)
        #expect(stage.world.faults.map(\.applications) == [1])
        #expect(await stage.world.journal().isEmpty)
        stage.world.removeFaults()
        #expect(try await failure("phone.localhost") == nil)
    }

    @Test func `a handshake is cut after a byte, as often as the fault says`() async throws {
        let fault = """
            {"id":"cut","match":{"host":"phone.localhost","peer":"127.0.0.1","count":2},"stage":"handshake","at":50,
             "action":{"type":"close"}}
            """
        let reply = try await stage.ask("POST", "/_larder/faults", fault, as: nil)
        #expect(reply.status == 201 && (try? reply.json["warnings"]) == nil, "\(reply.text)")
        for _ in 0..<2 {
            let peer = try connect("phone.localhost")
            try peer.session.start()
            try peer.flush()
            #expect(await peer.raw.readToEnd().bytes.count == 50)
        }
        let peer = try connect("phone.localhost")
        try await peer.shakeHands()
        try peer.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        #expect(try await peer.readToEnd().hasPrefix("HTTP/1.1 200 "))
        // A request over http has no handshake.
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
        #expect(
            try await stage.ask("GET", "/_larder/faults", as: nil).json["items"]?.array?.first?["applications"]
                == .integer(2)
        )
    }

    @Test func `a client that has a session meets the fault too`() async throws {
        let first = try connect()
        try await first.shakeHands()
        try first.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        _ = try await first.readToEnd()
        let second = try connect()
        try await second.shakeHands()
        #expect(second.session.isResumed)
        try stage.world.set(Fault(.certificate(.expired)))
        #expect(try await failure("localhost")?.code == .certificateExpired)
    }

    @Test func `a stalled handshake ends with its client, and the server is at rest`() async throws {
        try stage.world.set(Fault(.never, stage: .handshake))
        let peer = try connect()
        try peer.session.start()
        try peer.flush()
        await reached { stage.world.faults.first?.applications == 1 }
        #expect(!peer.raw.hasNews)
        peer.raw.finishSending()
        #expect(await peer.raw.isClosedByPeer())
        #expect(await stage.backend.activity() == [])
    }

    @Test(arguments: [
        (#"{"match":{"path":"/v1/feed"},"stage":"handshake","action":{"type":"close"}}"#, "/match"),
        (#"{"match":{"method":"GET"},"action":{"type":"certificate","fault":"expired"}}"#, "/match"),
        (#"{"action":{"type":"certificate","fault":"old"}}"#, "/action/fault"),
        (#"{"stage":"handshake","action":{"type":"respond","status":500}}"#, "/stage"),
        (#"{"stage":"afterRead","action":{"type":"noCloseNotify"}}"#, "/stage"),
    ])
    func `a fault that a handshake cannot have is rejected`(_ fault: String, _ pointer: String) async throws {
        let reply = try await stage.ask("POST", "/_larder/faults", fault, as: nil)
        #expect(reply.status == 422)
        #expect(try reply.json["errors"]?.array?.first?["pointer"]?.string == pointer, "\(reply.text)")
    }

    @Test func `only main has handshakes, and only with https`() async throws {
        _ = try stage.backend.makeWorld(id: "blue")
        let fault = #"{"action":{"type":"certificate","fault":"expired"}}"#
        let reply = try await stage.ask("POST", "/_larder/worlds/blue/faults", fault, as: nil)
        #expect(reply.status == 422 && reply.text.contains("in the world main only"), "\(reply.text)")
        let plain = try Stage()
        let doubt = try await plain.ask("POST", "/_larder/faults", fault, as: nil)
        #expect(doubt.status == 201 && doubt.text.contains("start it with --tls"), "\(doubt.text)")
        let script = try await plain.ask("POST", "/_larder/script", "{\"steps\":[{\"faults\":[\(fault)]}]}", as: nil)
        #expect(script.status == 201 && script.text.contains("start it with --tls"), "\(script.text)")
        await plain.backend.stop()
    }

    @Test func `a captive portal shows its page over http, and another certificate over https`() async throws {
        let reply = try await stage.ask("POST", "/_larder/journeys/captive-portal", as: nil)
        #expect(reply.status == 201, "\(reply.text)")
        #expect(try await stage.ask("GET", "/v1/feed").text.contains("Free Wi-Fi"))
        #expect(try await failure("localhost")?.code == .certificateForAnotherHost)
        let blue = try stage.backend.makeWorld(id: "blue")
        try blue.set(.captivePortal)
        #expect(blue.faults.map(\.fault.stage) == [.afterRead])
        #expect(try await stage.ask("DELETE", "/_larder/journeys/captive-portal", as: nil).status == 204)
        #expect(try await failure("localhost") == nil)
    }

    @Test func `exchanges match by host and peer too`() async throws {
        var match = Self.match("Phone.localhost")
        match.peer = "127.0.0.1"
        try stage.world.set(Fault(.respond(CannedReply(status: 503)), when: match))
        for (host, status) in [("phone.localhost:8080", 503), ("tablet.localhost", 200)] {
            let client = try stage.connect()
            try client.send("GET /v1/feed HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            #expect(try await client.reply().status == status)
        }
    }

    @Test func `the journal names the scheme of each exchange, also of repeated ones`() async throws {
        // The clock of the system: only then are replies repeated without being made again.
        stage.world.clock.followSystem()
        let request = "GET /v1/feed?limit=2 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for isSecure in [false, true, false, true] {
            guard isSecure else {
                let plain = try stage.connect()
                try plain.send(request)
                _ = try await plain.reply()
                continue
            }
            let peer = try connect()
            try await peer.shakeHands()
            try peer.send(request)
            _ = try await peer.read(until: "}")
        }
        for number in 1...4 {
            let scheme = number % 2 == 0 ? "https" : "http"
            let curl = try await stage.ask("GET", "/_larder/journal/\(number)/curl", as: nil).text
            #expect(curl.contains("'\(scheme)://127.0.0.1/v1/feed?limit=2'"), "\(number): \(curl)")
        }
        let log = try await stage.ask("GET", "/_larder/journal/har", as: nil).json["log"]
        let urls = (log?["entries"]?.array ?? []).compactMap { $0["request"]?["url"]?.string }
        #expect(urls.map { $0.hasPrefix("https://") } == [false, true, false, true], "\(urls)")
    }

    @Test func `a proxy that does not trust its server names the flag that helps`() async throws {
        let url = try #require(HTTPURL("https://127.0.0.1:\(stage.backend.port)"))
        let proxy = try Stage { $0.origin = .server(url) }
        let reply = try await proxy.ask("GET", "/v1/feed")
        let detail = try reply.json["detail"]?.string ?? ""
        #expect(reply.status == 502 && detail.contains("--ca FILE") && detail.contains("not trusted"), "\(detail)")
    }
}
