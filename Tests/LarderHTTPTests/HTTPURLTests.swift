import LarderHTTP
import LarderTime
import TestSupport
import Testing

@Suite("HTTP URLs", .oneMinute)
struct HTTPURLTests {
    @Test(arguments: [
        ("HTTP://Origin.TEST/A?b=C#d", "http://origin.test/A?b=C"), ("http://origin.test", "http://origin.test/"),
        ("http://origin.test:80/", "http://origin.test/"), ("https://origin.test:443", "https://origin.test/"),
        ("http://origin.test:443/", "http://origin.test:443/"), ("http://origin.test:/", "http://origin.test/"),
        ("http://origin.test?a", "http://origin.test/?a"), ("http://origin.test#a", "http://origin.test/"),
        ("http://origin.test/?", "http://origin.test/?"), ("http://[::1]:80/a", "http://[::1]/a"),
        ("http://[::1]/a", "http://[::1]/a"), ("http://Me:Pw@Origin.test/a", "http://Me:Pw@origin.test/a"),
        ("http://origin.test/ä/%c3%A4/..", "http://origin.test/ä/%c3%A4/.."),
    ])
    func `equal URLs have one normal form`(text: String, name: String) { #expect(HTTPURL(text)?.text == name) }

    @Test(arguments: [
        "", ":", "http:", "http:/a", "http://", "http://:80", "http:///a", "ws://a", "http://a b", "http://a:b/", "a/b",
    ])
    func `an invalid URL is rejected`(text: String) { #expect(HTTPURL(text) == nil) }

    @Test(arguments: ["http://localhost:8080", "https://LOCALHOST:8443/a", "http://127.0.0.1", "https://[::1]:8443"])
    func `a host of this machine is local`(text: String) { #expect(HTTPURL(text)?.isLocal == true) }

    @Test(arguments: [
        "http://localhost.evil.example", "http://127.0.0.1.evil.example", "http://evil.example/?a=http://localhost",
        "http://localhost@evil.example",
    ])
    func `a host that only looks so is not local`(text: String) { #expect(HTTPURL(text)?.isLocal == false) }

    // The examples of RFC 3986 §5.4, as far as the result is an http URL.
    @Test(arguments: [
        ("g", "/b/c/g"), ("./g", "/b/c/g"), ("g/", "/b/c/g/"), ("/g", "/g"), ("?y", "/b/c/d;p?y"), ("g?y", "/b/c/g?y"),
        ("#s", "/b/c/d;p?q"), ("g#s", "/b/c/g"), (";x", "/b/c/;x"), ("", "/b/c/d;p?q"), (".", "/b/c/"), ("./", "/b/c/"),
        ("..", "/b/"), ("../", "/b/"), ("../g", "/b/g"), ("../..", "/"), ("../../g", "/g"), ("../../../g", "/g"),
        ("/./g", "/g"), ("/../g", "/g"), ("g.", "/b/c/g."), ("..g", "/b/c/..g"), ("./g/.", "/b/c/g/"),
        ("g/../h", "/b/c/h"),
        ("g?y/../x", "/b/c/g?y/../x"),
    ])
    func `references are resolved`(reference: String, target: String) throws {
        let base = try #require(HTTPURL("http://a/b/c/d;p?q"))
        #expect(base.resolve(reference)?.text == "http://a" + target)
    }

    @Test func `normalising a URL twice gives the same URL`() {
        let seed: UInt64 = 0x5EED_0041
        var random = SeededGenerator(seed: seed)
        let alphabet = Array("htpsHTPS:/?#@[]%.aZ0 \u{0}ä").map(String.init)
        for _ in 0..<20_000 {
            let tail = (0..<random.uniform(in: 0..<12)).map { _ in alphabet[random.uniform(in: 0..<alphabet.count)] }
                .joined()
            guard let url = HTTPURL("http://" + tail) else { continue }
            #expect(HTTPURL(url.text) == url, "seed \(seed): \(tail)")
            _ = url.resolve(tail)
        }
    }

    @Test func `WebSocket URLs have the ports of http and https`() {
        #expect(HTTPURL("ws://h/x", schemes: [.ws, .wss])?.port == 80)
        #expect(HTTPURL("WSS://H", schemes: [.ws, .wss])?.text == "wss://h/")
        #expect(HTTPURL("http://h", schemes: [.ws, .wss]) == nil)
    }

    @Test(arguments: [
        ("http://[::1]:81/", "::1", 81, "[::1]:81"), ("http://H.test", "h.test", 80, "h.test"),
        ("http://me@h:0443", "h", 443, "h:443"),
    ])
    func `host, port and authority`(text: String, host: String, port: Int, authority: String) throws {
        let url = try #require(HTTPURL(text))
        #expect(url.host == host && url.port == port && url.authority == authority)
    }

    @Test(arguments: ["http://h:0/", "http://h:65536/", "http://h:123456/"])
    func `a port out of range is rejected`(text: String) { #expect(HTTPURL(text) == nil) }
}
