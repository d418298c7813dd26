import LarderTime
import TestSupport
import Testing

@testable import Larder

@Suite("URLs as the cache names them", .oneMinute)
struct CacheURLTests {
    @Test(arguments: [
        ("HTTP://Origin.TEST/A?b=C#d", "http://origin.test/A?b=C"), ("http://origin.test", "http://origin.test/"),
        ("http://origin.test:80/", "http://origin.test/"), ("https://origin.test:443", "https://origin.test/"),
        ("http://origin.test:443/", "http://origin.test:443/"), ("http://origin.test:/", "http://origin.test/"),
        ("http://origin.test?a", "http://origin.test/?a"), ("http://origin.test#a", "http://origin.test/"),
        ("http://origin.test/?", "http://origin.test/?"), ("http://[::1]:80/a", "http://[::1]/a"),
        ("http://[::1]/a", "http://[::1]/a"), ("http://Me:Pw@Origin.test/a", "http://Me:Pw@origin.test/a"),
        ("http://origin.test/ä/%c3%A4/..", "http://origin.test/ä/%c3%A4/.."),
    ])
    func `one resource has one name`(text: String, name: String) { #expect(CacheURL(text)?.text == name) }

    @Test(arguments: [
        "", ":", "http:", "http:/a", "http://", "http://:80", "http:///a", "ws://a", "http://a b", "http://a:b/", "a/b",
    ])
    func `what is no web address has none`(text: String) { #expect(CacheURL(text) == nil) }

    // The examples of RFC 3986 §5.4, as far as they lead to web addresses.
    @Test(arguments: [
        ("g", "/b/c/g"), ("./g", "/b/c/g"), ("g/", "/b/c/g/"), ("/g", "/g"), ("?y", "/b/c/d;p?y"), ("g?y", "/b/c/g?y"),
        ("#s", "/b/c/d;p?q"), ("g#s", "/b/c/g"), (";x", "/b/c/;x"), ("", "/b/c/d;p?q"), (".", "/b/c/"), ("./", "/b/c/"),
        ("..", "/b/"), ("../", "/b/"), ("../g", "/b/g"), ("../..", "/"), ("../../g", "/g"), ("../../../g", "/g"),
        ("/./g", "/g"), ("/../g", "/g"), ("g.", "/b/c/g."), ("..g", "/b/c/..g"), ("./g/.", "/b/c/g/"),
        ("g/../h", "/b/c/h"),
        ("g?y/../x", "/b/c/g?y/../x"),
    ])
    func `references are resolved`(reference: String, target: String) throws {
        let base = try #require(CacheURL("http://a/b/c/d;p?q"))
        #expect(base.resolve(reference)?.text == "http://a" + target)
    }

    @Test func `whatever is given, naming it twice changes nothing`() {
        let seed: UInt64 = 0x5EED_0041
        var random = SeededGenerator(seed: seed)
        let alphabet = Array("htpsHTPS:/?#@[]%.aZ0 \u{0}ä").map(String.init)
        for _ in 0..<20_000 {
            let tail = (0..<random.uniform(in: 0..<12)).map { _ in alphabet[random.uniform(in: 0..<alphabet.count)] }
                .joined()
            guard let url = CacheURL("http://" + tail) else { continue }
            #expect(CacheURL(url.text) == url, "seed \(seed): \(tail)")
            _ = url.resolve(tail)
        }
    }
}
