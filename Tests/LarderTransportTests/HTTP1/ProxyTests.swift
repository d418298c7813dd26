import LarderCoding
import LarderEvents
import LarderHTTP
import LarderTLS
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Proxy settings")
struct ProxySettingsTests {
    private func proxy(_ settings: ProxySettings, _ url: String) throws -> Proxy? {
        let url = try #require(HTTPURL(url, schemes: [.http, .https, .ws, .wss]))
        return try settings.proxy(for: url)
    }

    @Test func `the variables of the environment are read in both spellings, and lower case comes first`() throws {
        let upper = ProxySettings(environment: [
            "HTTP_PROXY": "http://one:1", "HTTPS_PROXY": "two:2", "NO_PROXY": "a.test, b.test",
        ])
        #expect(try proxy(upper, "http://c.test/")?.description == "one:1")
        #expect(try proxy(upper, "ws://c.test/")?.description == "one:1")
        #expect(try proxy(upper, "https://c.test/")?.description == "two:2")
        #expect(try proxy(upper, "wss://c.test/")?.description == "two:2")
        #expect(try proxy(upper, "https://b.test/") == nil)
        let both = ProxySettings(environment: [
            "HTTPS_PROXY": "upper:1", "https_proxy": "lower:2", "HTTP_PROXY": "three:3", "http_proxy": "",
            "NO_PROXY": "a.test", "no_proxy": "b.test",
        ])
        #expect(try proxy(both, "https://a.test/")?.description == "lower:2")
        #expect(try proxy(both, "http://a.test/")?.description == "three:3")
        #expect(try proxy(both, "https://b.test/") == nil)
        #expect(ProxySettings(environment: [:]) == .none)
        let cgi = ProxySettings(environment: ["HTTP_PROXY": "evil:1", "REQUEST_METHOD": "GET"])
        #expect(try proxy(cgi, "http://a.test/") == nil)
    }

    @Test(arguments: [
        ("*", "https://a.test/", true), ("a.test", "https://a.test/", true), ("A.TEST", "https://x.a.test/", true),
        (".a.test", "https://x.a.test/", true), (".a.test", "https://a.test/", true),
        ("a.test", "https://ba.test/", false),
        ("a.test:8443", "https://a.test:8443/", true), ("a.test:8443", "https://a.test/", false),
        ("192.0.2.1", "https://192.0.2.1/", true), ("192.0.2.1", "https://192.0.2.10/", false),
        ("192.0.2.0/24", "https://192.0.2.10/", true), ("192.0.2.0/28", "https://192.0.2.16/", false),
        ("2001:db8::/32", "https://[2001:db8::7]/", true), ("2001:DB8::7", "https://[2001:db8:0::7]/", true),
        ("[2001:db8::7]:444", "https://[2001:db8::7]/", false), ("[2001:db8::7]:443", "https://[2001:db8::7]/", true),
        ("192.0.2.0/99", "https://192.0.2.1/", false), ("/", "https://a.test/", false), ("", "https://a.test/", false),
        ("0.2.1", "https://192.0.2.1/", false),
    ])
    func `hosts of NO_PROXY are reached directly`(_ entry: String, _ url: String, _ isDirect: Bool) throws {
        let settings = ProxySettings(https: "proxy:1", except: [entry])
        #expect(try (proxy(settings, url) == nil) == isDirect)
    }

    @Test(arguments: ["localhost", "api.localhost", "127.0.0.1", "127.9.9.9", "[::1]"])
    func `this machine is reached directly`(_ host: String) throws {
        let settings = ProxySettings(http: "proxy:1", https: "proxy:1")
        #expect(try proxy(settings, "http://\(host):8080/") == nil)
        #expect(try proxy(settings, "wss://\(host)/") == nil)
    }

    @Test func `credentials are decoded for the field, and shown nowhere`() throws {
        let settings = ProxySettings(https: "http://us%40er:se%3Acret@[2001:db8::1]:3128")
        let proxy = try #require(try proxy(settings, "https://a.test/"))
        #expect(proxy.host == "2001:db8::1" && proxy.port == 3_128)
        #expect(proxy.authorization == "Basic " + Base64.encode(Array("us@er:se:cret".utf8)))
        var shown = "\(settings) \(String(reflecting: settings)) \(proxy)"
        dump(settings, to: &shown)
        var configuration = SocketTransport.Configuration()
        configuration.proxies = settings
        dump(configuration, to: &shown)
        #expect(shown.contains("2001:db8::1") && !shown.contains("cret") && !shown.contains("us%40er"), "\(shown)")
    }

    @Test(arguments: [
        "socks5://user:secret@proxy:1", "https://user:secret@proxy", "http://user:pa/secret@proxy:1", "http://",
        "http://pro xy",
    ])
    func `a setting that cannot be used is an error that names the variable`(_ text: String) throws {
        let error = try #require(throws: TransportError.self) {
            try proxy(ProxySettings(https: text), "https://a.test/")
        }
        #expect(error.code == .proxyRejected && error.kind == .unsent)
        #expect(error.description.contains("HTTPS_PROXY") && !error.description.contains("secret"), "\(error)")
    }
}

@Suite("Proxy tunnel")
struct ProxyTunnelTests {
    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n",
        "HTTP/1.0 200 Connection established\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 299 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: x\r\n\r\n",
    ])
    func `a success opens the tunnel, whatever its fields say of content`(_ reply: String) throws {
        let url = try #require(HTTPURL("http://proxy.test:1/"))
        var tunnel = ProxyTunnel(Proxy(url), to: Endpoint(host: "server.test", port: 443))
        #expect(try tunnel.receive(Array(reply.utf8).span))
    }

    @Test(arguments: ["Content-Length: x", "Transfer-Encoding: chunked"])
    func `a rejection is one, whatever its content`(_ field: String) throws {
        let url = try #require(HTTPURL("http://proxy.test:1/"))
        var tunnel = ProxyTunnel(Proxy(url), to: Endpoint(host: "server.test", port: 443))
        let reply = Array("HTTP/1.1 407 No\r\n\(field)\r\n\r\nno chunk".utf8)
        let error = #expect(throws: TransportError.self) { try tunnel.receive(reply.span) }
        #expect(error?.code == .proxyRejected)
    }
}

/// The proxy and the server are one peer: after `CONNECT` it answers as the server.
@Suite("Socket transport: proxies", .oneMinute)
struct ProxyTests {
    private let server: SecureServer

    init() throws {
        let clock = ManualClock(WallTime(seconds: 1_780_315_200))
        server = try SecureServer(hosts: ["origin.test"], clock: clock)
    }

    private var proxies: ProxySettings {
        let proxy = "http://user:secret@127.0.0.1:\(server.wire.port)"
        return ProxySettings(http: proxy, https: proxy)
    }

    private let credentials = "Proxy-Authorization: Basic \(Base64.encode(Array("user:secret".utf8)))\r\n"

    private func transport(_ change: (inout SocketTransport.Configuration) -> Void = { _ in }) -> SocketTransport {
        server.transport {
            $0.proxies = proxies
            change(&$0)
        }
    }

    private func sending(
        _ transport: SocketTransport,
        _ request: TransportRequest = TransportRequest(method: .post, url: "https://origin.test/x", body: [1])
    ) -> Task<Result<TransportResponse, TransportError>, Never> {
        Task {
            do throws(TransportError) { return .success(try await transport.send(request)) } catch {
                return .failure(error)
            }
        }
    }

    private func error(_ sent: Task<Result<TransportResponse, TransportError>, Never>) async throws -> TransportError {
        let result = await sent.value
        let error = try #require(throws: TransportError.self) { _ = try result.get() }
        #expect(!error.description.contains("secret"))
        return error
    }

    @Test func `an https request goes through a tunnel, and a further one over the same connection`() async throws {
        let transport = transport()
        let first = sending(transport, TransportRequest(url: "https://origin.test/x"))
        let peer = try await server.wire.accept()
        #expect(
            try await peer.readHead()
                == "CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\(credentials)\r\n"
        )
        await peer.send("HTTP/1.1 200 Connection established\r\nContent-Length: 7\r\n\r\n")
        try await peer.secure(server.tls)
        #expect(peer.requestedHost == "origin.test")
        let head = try await peer.readHead()
        #expect(head.hasPrefix("GET /x HTTP/1.1\r\nHost: origin.test\r\n") && !head.contains("Proxy-"))
        await peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        #expect(try await first.value.get().status == .noContent)
        let second = sending(transport, TransportRequest(url: "https://origin.test/y"))
        #expect(try await peer.readHead().hasPrefix("GET /y HTTP/1.1\r\n"))
        await peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        #expect(try await second.value.get().status == .noContent)
    }

    @Test func `the answer of the proxy may come in any pieces, after interim responses`() async throws {
        let sent = sending(transport())
        let peer = try await server.wire.accept()
        _ = try await peer.readHead()
        for byte in "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\n\r\n".utf8 { await peer.send([byte]) }
        try await peer.secure(server.tls)
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        #expect(try await sent.value.get().status == .noContent)
    }

    @Test func `an http request is sent to the proxy in absolute form`() async throws {
        let request = TransportRequest(
            url: "http://origin.test/x?y",
            fields: ["Proxy-Authorization": "mine"]
        )
        let sent = sending(transport(), request)
        let peer = try await server.wire.accept()
        let head = try await peer.readHead()
        #expect(head.hasPrefix("GET http://origin.test/x?y HTTP/1.1\r\nHost: origin.test\r\n\(credentials)"))
        #expect(!head.contains("mine"))
        await peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        #expect(try await sent.value.get().status == .noContent)
    }

    @Test(arguments: [407, 401, 403, 502, 504, 301]) func `an answer other than 2xx is an error, and nothing was sent`(
        _ status: Int
    ) async throws {
        let sent = sending(transport())
        let peer = try await server.wire.accept()
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 \(status) No\r\nContent-Length: 3\r\n\r\nno.")
        let error = try await error(sent)
        #expect(error.code == (status >= 500 ? .unreachable : .proxyRejected) && error.kind == .unsent)
        #expect(error.description.contains("127.0.0.1:\(server.wire.port)") && error.description.contains("\(status)"))
        #expect(error.description.contains("credentials") == (status == 407 || status == 401))
        #expect(await peer.isEnded())
    }

    @Test func `a 407 of the proxy of an http request is no response of the server`() async throws {
        let sent = sending(transport(), TransportRequest(method: .post, url: "http://origin.test/", body: [1]))
        let peer = try await server.wire.accept()
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        let error = try await error(sent)
        #expect(error.code == .proxyRejected && error.kind == .unsent)
    }

    @Test func `a proxy that closes, resets, or is none leaves the request unsent`() async throws {
        for act in 0..<4 {
            let sent = sending(transport())
            let peer = try await server.wire.accept()
            _ = try await peer.readHead()
            switch act {
            case 0: peer.finish()
            case 1: peer.reset()
            case 2: await peer.send([0x15, 3, 3, 0, 2, 2, 40, 10, 10])
            default:
                await peer.send("HTTP/1.1 200 OK\r\n")
                peer.finish()
            }
            let error = try await error(sent)
            #expect(error.code == .unreachable, "\(act): \(error)")
            #expect(error.description.contains("proxy"), "\(act): \(error)")
        }
    }

    @Test func `a proxy that is silent or does not accept is unreachable after the time for connecting`() async throws {
        let transport = transport { $0.connectTimeout = .seconds(5) }
        let sent = sending(transport)
        let peer = try await server.wire.accept()
        _ = try await peer.readHead()
        server.clock.advance(by: .seconds(5))
        let late = try await error(sent)
        #expect(late.code == .unreachable && late.description.contains("proxy"))
        #expect(await peer.isEnded())

        var free: WireServer? = try WireServer()
        let port = free?.port ?? 0
        free = nil
        let refused = try await error(
            sending(self.transport { $0.proxies = ProxySettings(https: "127.0.0.1:\(port)") })
        )
        #expect(refused.code == .unreachable && refused.description.contains("proxy 127.0.0.1:\(port)"), "\(refused)")
    }

    @Test func `the certificate is that of the server`() async throws {
        let sent = sending(transport(), TransportRequest(url: "https://other.test/"))
        let peer = try await server.wire.accept()
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 200 OK\r\n\r\n")
        await #expect(throws: (any Error).self) { try await peer.secure(server.tls) }
        #expect(try await error(sent).code == .untrusted)
    }

    @Test(arguments: ["ws", "wss"]) func `a WebSocket goes through a tunnel with the settings of the transport`(
        _ scheme: String
    ) async throws {
        let client = transport().webSockets()
        async let connecting = client.connect("\(scheme)://origin.test/live")
        let peer = try await server.wire.accept()
        let port = scheme == "ws" ? 80 : 443
        #expect(
            try await peer.readHead()
                == "CONNECT origin.test:\(port) HTTP/1.1\r\nHost: origin.test:\(port)\r\n\(credentials)\r\n"
        )
        await peer.send("HTTP/1.1 200 OK\r\n\r\n")
        if scheme == "wss" { try await peer.secure(server.tls) }
        let head = try await peer.acceptWebSocket(rest: WirePeer.frame(1, Array("hello".utf8)))
        #expect(head.hasPrefix("GET /live HTTP/1.1\r\nHost: origin.test\r\n") && !head.contains("Proxy-"))
        #expect(try await connecting.receive() == .text("hello"))
    }

    @Test func `a WebSocket reports a proxy that rejects, closes or has no use`() async throws {
        for (answer, code) in [
            ("HTTP/1.1 407 No\r\n\r\n", ErrorCode<WebSocketError>.proxyRejected),
            ("HTTP/1.1 502 No\r\n\r\n", .unreachable),
            ("", .unreachable),
        ] {
            let client = transport().webSockets()
            let connecting = Task {
                await failure { () async throws(WebSocketError) in _ = try await client.connect("wss://origin.test/") }
            }
            let peer = try await server.wire.accept()
            _ = try await peer.readHead()
            await peer.send(answer)
            if answer.isEmpty { peer.finish() }
            let error = try #require(await connecting.value)
            #expect(error.code == code && error.status == nil, "\(error)")
            #expect(!error.description.contains("secret"))
        }
        let unusable = transport { $0.proxies = ProxySettings(https: "socks5://proxy") }.webSockets()
        let error = await failure { () async throws(WebSocketError) in _ = try await unusable.connect("wss://a.test/") }
        #expect(error?.code == .proxyRejected)
    }
}
