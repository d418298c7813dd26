import LarderHTTP
import LarderTesting
import LarderTime
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Requests over sockets", .oneMinute) struct SocketRequestTests {
    @Test func `a URL is parsed into host, port and target`() throws {
        let cases: [(String, String, Int, String, String)] = [
            ("http://h", "h", 80, "h", "/"), ("HTTP://H:80/", "h", 80, "h", "/"),
            ("http://127.0.0.1:8080/a?b=c#d", "127.0.0.1", 8_080, "127.0.0.1:8080", "/a?b=c"),
            ("http://h?x=1", "h", 80, "h", "/?x=1"), ("http://h:/x", "h", 80, "h", "/x"),
            ("http://[::1]:81/x", "::1", 81, "[::1]:81", "/x"), ("http://[::1]", "::1", 80, "[::1]", "/"),
            ("http://h/a b", "h", 80, "h", "/a%20b"), ("http://h/\u{e9}", "h", 80, "h", "/%C3%A9"),
        ]
        for (url, host, port, authority, path) in cases {
            let target = try HTTPURL(requested: url)
            #expect(Endpoint(target) == Endpoint(host: host, port: port), "\(url)")
            #expect(target.authority == authority && target.target == path, "\(url): \(target)")
        }
    }

    @Test func `a redacted URL has no user information`() throws {
        for (url, told) in [
            ("http://u:p@h/x?y=a@b", "http://…@h/x?y=a@b"), ("http://h/a@b", "http://h/a@b"), ("u:p@h", "u:p@h"),
            ("", ""),
            ("wss://a@b@c:1", "wss://…@c:1"),
        ] { #expect(HTTPURL.redacted(url) == told) }
        do throws(TransportError) {
            Issue.record("\(try HTTPURL(requested: "http://ana:secret@h/"))")
        } catch { #expect(!error.description.contains("secret")) }
    }

    @Test(arguments: [
        "", "h", "/x", "http:", "http://", "http:///x", "https://u:p@h/", "ftp://h/", "http://u:p@h/", "http://h:0/",
        "http://h:65536/", "http://h:x/", "http://[::1/", "http://[::1]x/", "http://h:1:2/", "http://h\0/", "http:// /",
    ])
    func `a URL that is neither http nor https is rejected`(url: String) {
        do throws(TransportError) {
            Issue.record("\(try HTTPURL(requested: url))")
        } catch { #expect(error.code == .invalidURL) }
    }

    private func head(_ request: TransportRequest) throws -> [String] {
        let url = try HTTPURL(requested: request.url)
        let bytes = try SocketRequest.bytes(request, url, offersCodings: SocketRequest.offersCodings(request))
        return String(decoding: bytes, as: UTF8.self).components("\r\n")
    }

    @Test func `the transport sets Host and Content-Length, whatever the caller's fields are`() throws {
        let fields: Fields = [
            .host: "evil", .contentLength: "9", .transferEncoding: "chunked", .connection: "close",
            .accept: "a\r\nX: y",
        ]
        let post = try head(
            TransportRequest(method: .post, url: "http://h:81/x?y", fields: fields, body: Array("abc".utf8))
        )
        #expect(
            post == [
                "POST /x?y HTTP/1.1", "Host: h:81", "Accept: a  X: y", "Accept-Encoding: gzip, deflate",
                "User-Agent: Larder",
                "Content-Length: 3", "", "abc",
            ]
        )
        #expect(try head(TransportRequest(method: .put, url: "http://h")).contains("Content-Length: 0"))
        #expect(!(try head(TransportRequest(url: "http://h")).contains { $0.hasPrefix("Content-Length") }))
    }

    @Test func `codings are offered unless the caller negotiates or asks for a range`() throws {
        func offers(_ fields: Fields) throws -> [String] {
            try head(TransportRequest(url: "http://h", fields: fields)).filter { $0.hasPrefix("Accept-Encoding") }
        }
        #expect(try offers([:]) == ["Accept-Encoding: gzip, deflate"])
        #expect(try offers([.range: "bytes=0-9"]) == ["Accept-Encoding: identity"])
        #expect(try offers([.acceptEncoding: "br"]) == ["Accept-Encoding: br"])
        #expect(try offers([.acceptEncoding: "gzip", .range: "bytes=0-9"]) == ["Accept-Encoding: gzip"])
    }

    @Test func `an invalid method is not sent`() throws {
        for method in ["", "GET /evil HTTP/1.1\r\n", "G T", "CONNECT"] {
            do throws(TransportError) {
                let request = TransportRequest(method: Method(method), url: "http://h")
                _ = try SocketRequest.bytes(request, try HTTPURL(requested: request.url), offersCodings: false)
                Issue.record("\(method)")
            } catch { #expect(error.code == .invalidRequest) }
        }
    }

    @Test func `a redirect keeps the method where required and drops credentials for another origin`() throws {
        let key = FieldName("X-API-Key")
        let post = TransportRequest(
            method: .post,
            url: "http://h/a/b?c",
            fields: [
                .authorization: "t", .cookie: "c", key: "k", .contentType: "text/plain",
                .accept: "*/*",
            ],
            body: [1]
        )
        func next(_ code: Int, _ location: String?, _ request: TransportRequest) -> TransportRequest? {
            var fields = Fields()
            if let location { fields.add(.location, location) }
            return Redirection.next(after: request, Status(code: code), fields)
        }
        for code in [302, 303] {
            let moved = next(code, "../d", post)
            #expect(moved?.url == "http://h/d" && moved?.method == .get && moved?.body.isEmpty == true)
            #expect(
                moved?.fields == [.authorization: "t", .cookie: "c", key: "k", .accept: "*/*"]
            )
        }
        for code in [301, 307, 308] {
            let moved = next(code, "/x", post)
            #expect(moved?.method == .post && moved?.body == [1] && moved?.fields == post.fields)
            let get = TransportRequest(url: "http://h/", fields: post.fields)
            #expect(next(code, "http://other/x", get)?.fields == [.contentType: "text/plain", .accept: "*/*"])
        }
        let head = TransportRequest(method: .head, url: "http://h/")
        #expect(next(303, "/x", head)?.method == .head)
        #expect(next(302, "https://h/x", head)?.url == "https://h/x")
        for (code, location) in [
            (200, "/x"), (304, "/x"), (300, "/x"), (302, nil), (302, "ftp://h/"), (302, "http://u@h/"),
        ] {
            #expect(next(code, location, head) == nil, "\(code) \(location ?? "")")
        }
    }

    @Test func `a redirect never leads from https to http, nor content to another origin`() async throws {
        func next(_ code: Int, _ location: String, _ request: TransportRequest) -> TransportRequest? {
            Redirection.next(after: request, Status(code: code), [.location: location])
        }
        let secure = TransportRequest(url: "https://h/")
        for location in ["http://h/", "http://h:443/", "http://other/", "HTTP://h/x"] {
            #expect(next(302, location, secure) == nil, "\(location)")
        }
        #expect(next(302, "//other/", secure)?.url == "https://other/")
        var upload = TransportRequest(method: .put, url: "http://h/")
        upload.upload = RequestBody([1])
        let post = TransportRequest(method: .post, url: "http://h/", body: [1])
        for request in [upload, post] {
            for location in ["http://other/", "http://h:81/", "https://h/"] {
                #expect(next(307, location, request) == nil && next(308, location, request) == nil, "\(location)")
            }
            #expect(next(303, "http://other/", request)?.hasContent == false)
        }
        // The redirect is the response.
        let transport = ScriptedTransport(script: [
            .text("moved", status: Status(code: 307), fields: [.location: "http://other/"])
        ])
        let reply = try await HostGate(clock: ManualClock()).guarding(transport).send(post)
        #expect(reply.status.code == 307 && reply.redirectedTo == nil && transport.requests.count == 1)
    }
}

extension String {
    fileprivate func components(_ separator: String) -> [String] {
        split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    }
}
