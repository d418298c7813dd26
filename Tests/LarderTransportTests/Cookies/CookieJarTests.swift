import LarderHTTP
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Cookies", .oneMinute)
struct CookieJarTests {
    /// 2026-06-01T12:00:00Z.
    private let clock = ManualClock(WallTime(seconds: 1_780_315_200))

    /// The cookies that are sent to URLs after fields of responses of other URLs.
    private func sent(
        _ responses: [(url: String, fields: [String])],
        to url: String,
        in given: CookieJar? = nil
    ) async throws -> String? {
        let jar = given ?? CookieJar(clock: clock)
        for (url, fields) in responses {
            var reply = TransportResponse(status: .ok)
            for field in fields { reply.fields.add(.setCookie, field) }
            _ = try await jar.attached(to: ScriptedTransport(script: [.response(reply)])).send(
                TransportRequest(url: url)
            )
        }
        let last = ScriptedTransport { _, _ in .text("") }
        _ = try await jar.attached(to: last).send(TransportRequest(url: url))
        return last.requests.first?.fields[.cookie]
    }

    @Test(arguments: [
        // Host-only, and for a domain.
        ("https://a.test/", "n=1", "https://a.test/x", "n=1"), ("https://a.test/", "n=1", "https://b.a.test/", nil),
        ("https://b.a.test/", "n=1; Domain=a.test", "https://c.a.test/", "n=1"),
        ("https://b.a.test/", "n=1; domain=.A.test", "https://a.test/", "n=1"),
        ("https://b.a.test/", "n=1; Domain=a.test", "https://xa.test/", nil),
        ("https://a.test/", "n=1; Domain=b.a.test", "https://b.a.test/", nil),
        ("https://a.test/", "n=1; Domain=other.test", "https://other.test/", nil),
        ("https://a.test/", "n=1; Domain=test", "https://b.test/", nil),
        ("https://a.test/", "n=1; Domain=", "https://a.test/", "n=1"),
        ("http://localhost/", "n=1; Domain=localhost", "http://localhost/", "n=1"),
        ("http://10.0.0.1/", "n=1; Domain=10.0.0.1", "http://10.0.0.1/", "n=1"),
        ("http://10.0.0.1/", "n=1; Domain=0.0.1", "http://10.0.0.1/", nil),
        ("https://a.test:8443/", "n=1", "https://a.test/", "n=1"),
        // Paths.
        ("https://a.test/x/y", "n=1", "https://a.test/x/z", "n=1"),
        ("https://a.test/x/y", "n=1", "https://a.test/", nil),
        ("https://a.test/x/y", "n=1", "https://a.test/x", "n=1"),
        ("https://a.test/x/y", "n=1", "https://a.test/xx", nil),
        ("https://a.test/x/y", "n=1; Path=/", "https://a.test/", "n=1"),
        ("https://a.test/", "n=1; Path=/x/", "https://a.test/x/y?z", "n=1"),
        ("https://a.test/", "n=1; Path=/x/", "https://a.test/x", nil),
        ("https://a.test/x/y", "n=1; Path=z", "https://a.test/x/q", "n=1"),
        // Secure.
        ("https://a.test/", "n=1; Secure", "http://a.test/", nil),
        ("https://a.test/", "n=1; Secure", "wss://a.test/", "n=1"),
        ("http://a.test/", "n=1; secure", "https://a.test/", nil), ("http://a.test/", "n=1", "https://a.test/", "n=1"),
        ("https://a.test/", "__Secure-n=1", "https://a.test/", nil),
        ("https://a.test/", "__Secure-n=1; Secure", "https://a.test/", "__Secure-n=1"),
        ("https://a.test/", "__Host-n=1; Secure; Path=/", "https://a.test/", "__Host-n=1"),
        ("https://a.test/", "__Host-n=1; Secure; Path=/; Domain=a.test", "https://a.test/", nil),
        // Expiry.
        ("https://a.test/", "n=1; Max-Age=1", "https://a.test/", "n=1"),
        ("https://a.test/", "n=1; Max-Age=0", "https://a.test/", nil),
        ("https://a.test/", "n=1; Max-Age=-5", "https://a.test/", nil),
        ("https://a.test/", "n=1; Max-Age=x", "https://a.test/", "n=1"),
        ("https://a.test/", "n=1; Max-Age=99999999999999999999", "https://a.test/", "n=1"),
        ("https://a.test/", "n=1; Expires=Mon, 01 Jun 2026 11:59:59 GMT", "https://a.test/", nil),
        ("https://a.test/", "n=1; Expires=Mon, 01-Jun-26 12:00:01 GMT", "https://a.test/", "n=1"),
        ("https://a.test/", "n=1; Max-Age=5; Expires=Mon, 01 Jun 2020 12:00:00 GMT", "https://a.test/", "n=1"),
        ("https://a.test/", "n=1; Expires=soon", "https://a.test/", "n=1"),
        ("https://a.test/", "n=1; Expires=Fri, 31 Dec 9999 23:59:59 GMT", "https://a.test/", "n=1"),
        // Syntax.
        ("https://a.test/", " n = a=b ; x", "https://a.test/", "n=a=b"),
        ("https://a.test/", "n=\"q\"", "https://a.test/", "n=\"q\""),
        ("https://a.test/", "n", "https://a.test/", nil), ("https://a.test/", "=1", "https://a.test/", nil),
        ("https://a.test/", "n=", "https://a.test/", "n="), ("https://a.test/", "", "https://a.test/", nil),
        ("https://a.test/", "n=1; Path=/; Path=/x", "https://a.test/", nil),
    ])
    func `a cookie is sent where it belongs`(
        _ from: String,
        _ field: String,
        _ url: String,
        _ expected: String?
    ) async throws {
        #expect(try await sent([(from, [field])], to: url) == expected)
    }

    @Test func `later cookies replace earlier ones, longer paths come first, then older cookies`() async throws {
        let url = "https://a.test/x/y"
        #expect(
            try await sent([(url, ["n=1; Path=/", "m=2; Path=/x", "k=3; Path=/"]), (url, ["n=4; Path=/"])], to: url)
                == "m=2; n=4; k=3"
        )
        #expect(try await sent([(url, ["n=1"]), (url, ["n=; Max-Age=0"])], to: url) == nil)
        // One of a connection that others can change.
        let plain = "http://a.test/x/y"
        #expect(try await sent([(url, ["n=1; Secure"]), (plain, ["n=evil"])], to: url) == "n=1")
    }

    @Test func `a cookie is sent until it expires, and at most 400 days`() async throws {
        let jar = CookieJar(clock: clock)
        let url = "https://a.test/"
        #expect(
            try await sent([(url, ["n=1; Max-Age=60", "m=2; Max-Age=99999999", "s=3"])], to: url, in: jar)
                == "n=1; m=2; s=3"
        )
        clock.advance(by: .seconds(59))
        #expect(try await sent([], to: url, in: jar) == "n=1; m=2; s=3")
        clock.advance(by: .seconds(1))
        #expect(try await sent([], to: url, in: jar) == "m=2; s=3")
        clock.advance(by: .seconds(400 * 86_400))
        #expect(try await sent([], to: url, in: jar) == "s=3")
    }

    @Test func `the number of cookies and their size are limited`() async throws {
        let jar = CookieJar(clock: clock)
        let url = "https://a.test/"
        #expect(try await sent([(url, ["n=" + String(repeating: "x", count: 4_096)])], to: url, in: jar) == nil)
        let cookies = try await sent([(url, (0..<60).map { "n\($0)=\($0)" })], to: url, in: jar)
        #expect(cookies?.hasPrefix("n10=10; ") == true && jar.count == CookieJar.domainMaximum)
        for host in 0..<30 {
            let url = "https://h\(host).test/"
            _ = try await sent([(url, (0..<40).map { "n\($0)=\($0)" })], to: url, in: jar)
        }
        #expect(jar.count == CookieJar.countMaximum)
        #expect(try await sent([], to: url, in: jar) == nil)
    }

    @Test func `each hop of a redirect has its own cookies`() async throws {
        let jar = CookieJar(clock: clock)
        let transport = ScriptedTransport { request, number in
            switch number {
            case 1:
                .text("", status: Status(code: 302), fields: [.location: "https://b.test/", .setCookie: "n=a; Path=/"])
            case 2: .text("", status: Status(code: 302), fields: [.location: "https://a.test/y", .setCookie: "n=b"])
            default: .text("")
            }
        }
        let reply = try await jar.attached(to: transport).send(TransportRequest(url: "https://a.test/x"))
        #expect(reply.redirectedTo == "https://a.test/y")
        #expect(transport.requests.map { $0.fields[.cookie] } == [nil, nil, "n=a"])
        _ = try await jar.attached(to: transport).open(TransportRequest(url: "https://b.test/"))
        #expect(transport.requests.last?.fields[.cookie] == "n=b")
        // An app's own field is left alone.
        _ = try await jar.attached(to: transport).send(
            TransportRequest(url: "https://b.test/", fields: [.cookie: "own=1"])
        )
        #expect(transport.requests.last?.fields[.cookie] == "own=1")
    }

    @Test func `a response to a request from before the jar was emptied stores nothing`() async throws {
        let jar = CookieJar(clock: clock)
        let transport = ScriptedTransport { _, number in
            if number == 1 { jar.removeAll() }
            return .text("", fields: [.setCookie: "n=\(number)"])
        }
        let attached = jar.attached(to: transport)
        _ = try await attached.send(TransportRequest(url: "https://a.test/"))
        #expect(jar.count == 0)
        _ = try await attached.send(TransportRequest(url: "https://a.test/"))
        #expect(jar.count == 1)
    }

    @Test func `handshakes of WebSockets have cookies, and their replies store some`() async throws {
        let jar = CookieJar(clock: clock)
        let server = try WireServer()
        let client = jar.attached(to: SocketTransport(clock: clock).webSockets())
        let url = "127.0.0.1:\(server.port)/"
        _ = try await sent([("http://" + url, ["n=1"])], to: "http://" + url, in: jar)
        async let connecting = client.connect("ws://" + url)
        let peer = try await server.accept()
        let head = try await peer.acceptWebSocket(lines: "Set-Cookie: m=2\r\n")
        #expect(head.contains("\r\nCookie: n=1\r\n"))
        _ = try await connecting
        #expect(try await sent([], to: "http://" + url, in: jar) == "n=1; m=2")
    }

    @Test(arguments: [
        ("Wed, 21-Oct-2026 07:28:00 GMT", 1_792_567_680), ("21 oct 2026 7:28:0", 1_792_567_680),
        ("Oct 21 07:28:00 2026", 1_792_567_680), ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Thu, 01-Jan-70 00:00:00 GMT", 0), ("", nil), ("21 Oct 2026", nil), ("31 Feb 2026 00:00:00", nil),
        ("21 Oct 1600 00:00:00", nil), ("21 Oct 2026 24:00:00", nil),
    ])
    func `dates are read in any order`(_ text: String, _ seconds: Int64?) {
        #expect(CookieDate.parse(text)?.seconds == seconds)
    }
}
