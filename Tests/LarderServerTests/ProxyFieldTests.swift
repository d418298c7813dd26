import LarderEngine
import LarderHTTP
import TestSupport
import Testing

@testable import LarderServer

@Suite("Fields that a proxy passes on", .oneMinute)
struct ProxyFieldTests {
    struct Translation: Sendable, CustomTestStringConvertible {
        /// `SERVER` is host and port of the server.
        let location: String
        /// `PROXY` is the host of the request.
        let expected: String
        var basePath = ""
        var world = ""

        var testDescription: String { "\(world) \(basePath) \(location)" }

        static let table = [
            Translation(location: "http://SERVER/login?a=1#b", expected: "http://PROXY/login?a=1#b"),
            Translation(location: "HTTP://SERVER", expected: "http://PROXY/"),
            Translation(location: "//SERVER/x", expected: "http://PROXY/x"),
            Translation(location: "/login", expected: "/login"),
            Translation(location: "next", expected: "next"),
            Translation(location: "http://other.example/x", expected: "http://other.example/x"),
            Translation(location: "https://SERVER/x", expected: "https://SERVER/x"),
            Translation(location: "http://me@SERVER/x", expected: "http://me@SERVER/x"),
            Translation(location: "http://SERVER/x", expected: "http://PROXY/w/blue/x", world: "/w/blue"),
            Translation(location: "/x", expected: "/w/blue/x", world: "/w/blue"),
            Translation(location: "http://SERVER/api/x", expected: "http://PROXY/x", basePath: "/api"),
            Translation(location: "/api?a=1", expected: "/?a=1", basePath: "/api"),
            Translation(location: "/apix", expected: "/apix", basePath: "/api"),
            Translation(location: "http://SERVER/x", expected: "http://SERVER/x", basePath: "/api"),
            Translation(location: "/api/x", expected: "/w/blue/x", basePath: "/api", world: "/w/blue"),
        ]
    }

    private func proxy(to url: String) throws -> Stage {
        let url = try #require(HTTPURL(url))
        return try Stage { $0.origin = .server(url) }
    }

    @Test("the server's own URL becomes the proxy's", arguments: Translation.table)
    func translates(_ row: Translation) async throws {
        let server = try RawServer()
        let proxy = try proxy(to: server.url + row.basePath)
        if !row.world.isEmpty { _ = try proxy.backend.makeWorld(id: "blue") }
        let authority = "127.0.0.1:\(server.port)"
        let location = row.location.replacing("SERVER", with: authority)
        let client = try proxy.connect()
        try client.send("GET \(row.world)/here HTTP/1.1\r\nHost: my.test:81\r\n\r\n")
        let peer = try await server.next()
        #expect(
            String(decoding: try await peer.read(until: "\r\n"), as: UTF8.self)
                == "GET \(row.basePath)/here HTTP/1.1\r\n"
        )
        try peer.send("HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Location: \(location)\r\n")
        try peer.send("Content-Length: 0\r\n\r\n")
        let reply = try await client.reply()
        let expected = row.expected.replacing("SERVER", with: authority).replacing("PROXY", with: "my.test:81")
        #expect(reply.field("Location") == expected && reply.field("Content-Location") == expected)
    }

    @Test func `a path that names only a world is the server's root`() async throws {
        let server = try RawServer()
        let proxy = try proxy(to: server.url)
        _ = try proxy.backend.makeWorld(id: "blue")
        let client = try proxy.send("GET", "/w/blue?a=1")
        let peer = try await server.next()
        #expect(String(decoding: try await peer.read(until: "\r\n"), as: UTF8.self) == "GET /?a=1 HTTP/1.1\r\n")
        try peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        #expect(try await client.reply().status == 204)
    }

    @Test(arguments: ["", "/w/blue"])
    func `bytes of field values that are not UTF-8 are unchanged in both directions`(world: String) async throws {
        let server = try RawServer()
        let proxy = try proxy(to: server.url)
        _ = try proxy.backend.makeWorld(id: "blue")
        let client = try proxy.connect()
        let line = Array("X-Name:  caf".utf8) + [0xE9, 0x20, 0xFF, 0x0D, 0x0A]
        try client.send(
            Array("GET \(world)/ HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n".utf8) + line + [0x0D, 0x0A]
        )
        let peer = try await server.next()
        let request = try await peer.read(until: "\r\n\r\n")
        #expect(request.firstRange(of: line) != nil)
        try peer.send(Array("HTTP/1.1 200 Fine\r\nContent-Length: 2\r\n".utf8) + line + Array("\r\nok".utf8))
        let head = try await client.read(until: "\r\n\r\n")
        #expect(head.firstRange(of: line) != nil && head.starts(with: "HTTP/1.1 200 Fine\r\n".utf8))
        #expect(try await client.read(count: 2) == Array("ok".utf8))
    }

    @Test func `a field over several lines is passed on in one`() async throws {
        let server = try CannedServer("HTTP/1.1 200 OK\r\nX-Long: one\r\n  two\r\nContent-Length: 2\r\n\r\nok")
        let reply = try await proxy(to: server.url).ask("GET", "/")
        #expect(reply.field("X-Long") == "one two" && reply.text == "ok")
    }
}
