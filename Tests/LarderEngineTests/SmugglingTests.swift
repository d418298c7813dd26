import TestSupport
import Testing

@testable import LarderEngine

/// Requests that one recipient reads in one way and another in another (RFC 9112 §11.2), from known attacks.
///
/// Each is followed by a second request on the connection. Either both are answered, because the first is
/// unambiguous, or the first is rejected and the connection closed before the second is parsed.
@Suite("Smuggling", .oneMinute)
struct SmugglingTests {
    struct Vector: CustomTestStringConvertible {
        let name: String
        let bytes: String
        /// The expected body of the reply; nil if the request is rejected.
        var text: String?
        var status = 400

        var testDescription: String { name }
    }

    private static func post(_ name: String, _ fields: String, _ body: String, _ status: Int = 400) -> Vector {
        Vector(name: name, bytes: "POST /p HTTP/1.1\r\nHost: h\r\n\(fields)\r\n\r\n\(body)", status: status)
    }

    private static func chunks(_ name: String, _ body: String, _ status: Int = 400) -> Vector {
        post(name, "Transfer-Encoding: chunked", body, status)
    }

    private static func head(_ name: String, _ head: String, _ status: Int = 400) -> Vector {
        Vector(name: name, bytes: "\(head)\r\n\r\n", status: status)
    }

    static let lengths: [Vector] = [
        post("CL.TE", "Content-Length: 6\r\nTransfer-Encoding: chunked", "0\r\n\r\nG"),
        post("TE.CL", "Transfer-Encoding: chunked\r\nContent-Length: 4", "1\r\nZ\r\n0\r\n\r\n"),
        post("two lengths", "Content-Length: 5\r\nContent-Length: 6", "hello"),
        post("the same length twice", "Content-Length: 5\r\nContent-Length: 5", "hello"),
        post("a list of lengths", "Content-Length: 5, 5", "hello"),
        post("a length and a comma", "Content-Length: 5,", "hello"),
        post("a sign", "Content-Length: +5", "hello"), post("a negative length", "Content-Length: -5", "hello"),
        post("hexadecimal", "Content-Length: 0x5", "hello"), post("a fraction", "Content-Length: 5.0", "hello"),
        post("an exponent", "Content-Length: 1e1", "hello"), post("blanks within", "Content-Length: 5 5", "hello"),
        post("quoted", "Content-Length: \"5\"", "hello"), post("no digits", "Content-Length:", "hello"),
        post("2^64 and five", "Content-Length: 18446744073709551621", "hello"),
        post("digits of another script", "Content-Length: \u{665}", "hello"),
        post("a vertical tab", "Content-Length: \u{b}5", "hello"), post("a NUL", "Content-Length: 5\0", "hello"),
        post("a space before the colon", "Content-Length : 5", "hello"),
    ]

    static let codings: [Vector] = [
        post("another coding", "Transfer-Encoding: xchunked", "0\r\n\r\n", 501),
        post("two fields", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x", "0\r\n\r\n", 501),
        post("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n", 501),
        post("identity", "Transfer-Encoding: identity", "0\r\n\r\n", 501),
        post("chunked and more", "Transfer-Encoding: chunked, identity", "0\r\n\r\n", 501),
        post("quoted", "Transfer-Encoding: \"chunked\"", "0\r\n\r\n", 501),
        post("a parameter", "Transfer-Encoding: chunked;q=1", "0\r\n\r\n", 501),
        post("an empty member", "Transfer-Encoding: , chunked", "0\r\n\r\n", 501),
        post("nothing", "Transfer-Encoding:", "0\r\n\r\n", 501),
        post("a hard blank", "Transfer-Encoding: \u{a0}chunked", "0\r\n\r\n", 501),
        post("a vertical tab", "Transfer-Encoding:\u{b}chunked", "0\r\n\r\n"),
        post("a form feed", "Transfer-Encoding: \u{c}chunked", "0\r\n\r\n"),
        post("a space before the colon", "Transfer-Encoding : chunked", "0\r\n\r\n"),
        post("folded", "Transfer-Encoding:\r\n chunked", "0\r\n\r\n"),
        post("folded behind another", "X: y\r\n Transfer-Encoding: chunked", "0\r\n\r\n"),
        post("behind a bare LF", "X: y\nTransfer-Encoding: chunked", "0\r\n\r\n"),
        post("behind a bare CR", "X: y\rTransfer-Encoding: chunked", "0\r\n\r\n"),
        head("with HTTP/1.0", "POST /p HTTP/1.0\r\nTransfer-Encoding: chunked"),
    ]

    static let chunking: [Vector] = [
        chunks("a sign", "+5\r\nhello\r\n0\r\n\r\n"), chunks("a prefix", "0x5\r\nhello\r\n0\r\n\r\n"),
        chunks("a negative size", "-1\r\nhello\r\n0\r\n\r\n"), chunks("a blank before", " 5\r\nhello\r\n0\r\n\r\n"),
        chunks("a blank behind", "5 \r\nhello\r\n0\r\n\r\n"), chunks("no size", "\r\nhello\r\n0\r\n\r\n"),
        chunks("a size beyond 64 bits", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
        chunks("the largest size", "ffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        chunks("a size beyond the limit", "ffffffff\r\nhello\r\n0\r\n\r\n", 413),
        chunks("a bare LF behind the size", "5\nhello\r\n0\r\n\r\n"),
        chunks("a bare LF behind the data", "5\r\nhello\n0\r\n\r\n"),
        chunks("more data than its size", "5\r\nhelloo\r\n0\r\n\r\n"),
        chunks("a bare LF in an extension", "5;a\nhello\r\n0\r\n\r\n"),
        chunks("a bare CR in an extension", "5;a\rb\r\nhello\r\n0\r\n\r\n"),
        chunks("a NUL in an extension", "5;a\0\r\nhello\r\n0\r\n\r\n"),
        chunks("a bare LF at the end", "0\r\n\n"), chunks("a folded trailer", "0\r\nX: y\r\n z\r\n\r\n"),
        chunks("a trailer without a colon", "0\r\nXX\r\n\r\n"),
        chunks("a blank before its colon", "0\r\nX : y\r\n\r\n"),
        chunks("a NUL in a trailer", "0\r\nX: \0\r\n\r\n"), chunks("a bare CR in a trailer", "0\r\nX: y\rZ: w\r\n\r\n"),
    ]

    static let heads: [Vector] = [
        head("a field without a name", "GET /p HTTP/1.1\r\nHost: h\r\n: x"),
        head("a name alone", "GET /p HTTP/1.1\r\nHost: h\r\nX"),
        head("a control character in a name", "GET /p HTTP/1.1\r\nHost: h\r\nX\u{1}: y"),
        head("a blank before the first field", "GET /p HTTP/1.1\r\n Host: h"),
        head("a blank before the method", " GET /p HTTP/1.1\r\nHost: h"),
        head("an LF before the method", "\nGET /p HTTP/1.1\r\nHost: h"),
        head("a blank behind the version", "GET /p HTTP/1.1 \r\nHost: h"),
        head("a tab in the target", "GET /p\tq HTTP/1.1\r\nHost: h"),
        head("a NUL in it", "GET /\0 HTTP/1.1\r\nHost: h"),
        head("a fragment", "GET /p#q HTTP/1.1\r\nHost: h"), head("HTTP/0.9", "GET /p"),
        head("a version of two digits", "GET /p HTTP/1.10\r\nHost: h"),
        head("small letters", "GET /p http/1.1\r\nHost: h"),
        head("HTTP/2's preface", "PRI * HTTP/2.0", 505), head("an asterisk", "GET * HTTP/1.1\r\nHost: h"),
        head("CONNECT", "CONNECT h:80 HTTP/1.1\r\nHost: h"),
        head("two hosts", "GET /p HTTP/1.1\r\nHost: a\r\nHost: b"), head("no host", "GET /p HTTP/1.1"),
        head("two hosts in one field", "GET /p HTTP/1.1\r\nHost: a, b"),
        head("a host of two words", "GET /p HTTP/1.1\r\nHost: a b"),
        head("a path in the host", "GET /p HTTP/1.1\r\nHost: a/b"),
        head("a port alone", "GET /p HTTP/1.1\r\nHost: :80"),
        head("a port of letters", "GET /p HTTP/1.1\r\nHost: a:b"), head("two ports", "GET /p HTTP/1.1\r\nHost: a:1:2"),
        head("userinfo in the host", "GET /p HTTP/1.1\r\nHost: u@a"),
        head("half an address", "GET /p HTTP/1.1\r\nHost: [::1"),
        head("an empty address", "GET /p HTTP/1.1\r\nHost: []"),
        head("more behind it", "GET /p HTTP/1.1\r\nHost: [::1]a"),
        head("userinfo in the target", "GET http://u:p@h/p HTTP/1.1\r\nHost: h"),
        head("no host in the target", "GET http:///p HTTP/1.1\r\nHost: h"),
        head(
            "a target that is longer than any head",
            "GET /\(String(repeating: "p", count: 20_000)) HTTP/1.1\r\nHost: h",
            414
        ),
        head("one that never ends", "GET /\(String(repeating: "p", count: 20_000))", 414),
        head(
            "a field that is too long",
            "GET /p HTTP/1.1\r\nHost: h\r\nX: \(String(repeating: "y", count: 20_000))",
            431
        ),
        head("another scheme", "GET ftp://h/p HTTP/1.1\r\nHost: h"),
    ]

    static let harmless: [Vector] = [
        Vector(name: "empty lines before", bytes: "\r\n\r\nGET /p HTTP/1.1\r\nHost: h\r\n\r\n", text: "GET /p "),
        Vector(name: "no host's name", bytes: "GET /p HTTP/1.1\r\nHost:\r\n\r\n", text: "GET /p "),
        Vector(name: "an address", bytes: "GET /p HTTP/1.1\r\nHost: [fe80::1%25eth0]:80\r\n\r\n", text: "GET /p "),
        Vector(name: "a name and no port", bytes: "GET /p HTTP/1.1\r\nHost: a_b.example:\r\n\r\n", text: "GET /p "),
        Vector(name: "another minor version", bytes: "GET /p HTTP/1.2\r\nHost: h\r\n\r\n", text: "GET /p "),
        Vector(name: "an absolute target", bytes: "GET HTTP://o:81/p?q HTTP/1.1\r\nHost: h\r\n\r\n", text: "GET /p?q "),
        Vector(name: "one without a path", bytes: "GET http://o HTTP/1.1\r\nHost: h\r\n\r\n", text: "GET / "),
        Vector(name: "a query without a path", bytes: "GET http://o?/p HTTP/1.1\r\nHost: h\r\n\r\n", text: "GET /?/p "),
        Vector(
            name: "an absolute target of https",
            bytes: "POST https://o/p?q HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi",
            text: "POST /p?q hi"
        ),
        Vector(name: "https without a path", bytes: "GET https://o HTTP/1.1\r\nHost: h\r\n\r\n", text: "GET / "),
        Vector(name: "the server itself", bytes: "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", text: "OPTIONS * "),
        Vector(
            name: "leading zeros",
            bytes: "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 0002\r\n\r\nhi",
            text: "POST /p hi"
        ),
        Vector(
            name: "a name like another",
            bytes: "POST /p HTTP/1.1\r\nHost: h\r\nTransfer_Encoding: chunked\r\n\r\n",
            text: "POST /p "
        ),
        Vector(
            name: "an extension, and trailers that would be framing",
            bytes: """
                POST /p HTTP/1.1\r\nHost: h\r\ntRANSFER-eNCODING:\tChUnKeD\r\n\r\n00000002;a=";"\r\nhi\r\n0;b\r\n\
                Content-Length: 50\r\nTransfer-Encoding: x\r\n\r\n
                """,
            text: "POST /p hi"
        ),
        Vector(
            name: "a length that the Connection field names",
            bytes: "POST /p HTTP/1.1\r\nHost: h\r\nConnection: Content-Length\r\nContent-Length: 2\r\n\r\nhi",
            text: "POST /p hi"
        ),
    ]

    @Test func `ambiguous framing is rejected, and the hidden request is never handled`() async throws {
        try await EchoHandler.serve { port in
            for vector in Self.lengths + Self.codings + Self.chunking + Self.heads {
                let client = try RawClient(port: port)
                try client.send(vector.bytes + "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
                client.finishSending()
                let (bytes, ending) = await client.readToEnd()
                let text = String(decoding: bytes, as: UTF8.self)
                #expect(text.hasPrefix("HTTP/1.1 \(vector.status) "), "\(vector.name): \(text)")
                #expect(text.ranges(of: "Content-Length: ").count == 1, "\(vector.name): \(text)")
                #expect(!text.contains("smuggled"), "\(vector.name): \(text)")
                #expect(ending == .closed, "\(vector.name)")
            }
        }
    }

    @Test func `unambiguous framing is accepted, and the next request is found`() async throws {
        try await EchoHandler.serve { port in
            for vector in Self.harmless {
                let client = try RawClient(port: port)
                try client.send(vector.bytes + "GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try await client.reply().text == vector.text, "\(vector.name)")
                #expect(try await client.reply().text == "GET /next ", "\(vector.name)")
            }
        }
    }

    @Test func `a hundred requests of different kinds in one write are answered in order`() async throws {
        try await EchoHandler.serve { port in
            var bytes = ""
            for index in 0..<100 {
                switch index % 4 {
                case 0: bytes += "GET /\(index) HTTP/1.1\r\nHost: h\r\n\r\n"
                case 1: bytes += "HEAD /\(index) HTTP/1.1\r\nHost: h\r\n\r\n"
                case 2: bytes += "PUT /\(index) HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n\r\n"
                default:
                    bytes += "POST /\(index) HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                    bytes += "1;x\r\n0\r\n1\r\n\n\r\n0\r\nT: u\r\n\r\n"
                }
            }
            let client = try RawClient(port: port)
            try client.send(bytes)
            for index in 0..<100 {
                let reply = try await client.reply(isHead: index % 4 == 1)
                let expected = ["GET /\(index) ", "", "PUT /\(index) \r\n", "POST /\(index) 0\n"][index % 4]
                #expect(reply.text == expected)
                #expect(
                    reply.field("Content-Length")
                        == String(index % 4 == 1 ? "HEAD /\(index) ".count : expected.utf8.count)
                )
            }
        }
    }

    @Test func `a request that is rejected by its head gets no 100 Continue`() async throws {
        try await EchoHandler.serve { port in
            let client = try RawClient(port: port)
            try client.send("POST /p HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n")
            #expect(try await client.reply().status == 413)
            client.finishSending()
            #expect(await client.isClosedByPeer())
        }
    }
}
