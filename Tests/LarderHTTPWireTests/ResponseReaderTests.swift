import LarderHTTP
import LarderHTTPWire
import LarderTime
import TestSupport
import Testing

@Suite("Response reader", .oneMinute) struct ResponseReaderTests {
    struct Whole: Hashable {
        var status = 0
        var fields: [String] = []
        var body = ""
        var keepsAlive = false
    }

    typealias Outcome = Result<Whole, ResponseReader.Failure>

    /// Reads the pieces, then the end of the connection if the reply needs it.
    private func read(_ pieces: [ArraySlice<UInt8>], isHead: Bool = false) -> Outcome {
        var reader = ResponseReader(isHead: isHead)
        var events: [ResponseReader.Event] = []
        do throws(ResponseReader.Failure) {
            for piece in pieces { try reader.receive(Array(piece).span, &events) }
            try reader.end(&events)
        } catch { return .failure(error) }
        var whole = Whole()
        var ends = 0
        for event in events {
            switch event {
            case .head(let head):
                whole.status = head.status.code
                whole.fields = head.fields.map { "\($0.name): \($0.value)" }
            case .content(let bytes): whole.body += String(decoding: bytes, as: UTF8.self)
            case .end: ends += 1
            }
        }
        whole.keepsAlive = reader.keepsAlive
        #expect(ends == 1)
        return .success(whole)
    }

    private func read(_ text: String, isHead: Bool = false) -> Outcome { read([Array(text.utf8)[...]], isHead: isHead) }

    private static let replies: [String] = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA:  b \r\na: c\r\n\r\n12345",
        "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=\"y\"\r\n12345\r\nA\r\n0123456789\r\n0\r\nT: 1\r\nU: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n000\r\n\r\n",
        "HTTP/1.0 200 OK\r\nX: y\r\n\r\nto the end",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1",
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 3, 3\r\n\r\nno!",
        "HTTP/1.1 200 OK\r\nFolded: a\r\n\t b\r\nContent-Length: 0\r\n\r\n",
    ]

    @Test func `each framing gives the complete response`() {
        let expected: [Whole] = [
            Whole(status: 200, fields: ["Content-Length: 5", "A: b", "a: c"], body: "12345", keepsAlive: true),
            Whole(status: 200, fields: ["Content-Length: 0"], keepsAlive: true),
            Whole(status: 200, fields: ["Transfer-Encoding: chunked"], body: "123450123456789", keepsAlive: true),
            Whole(status: 200, fields: ["Transfer-Encoding: Chunked"], keepsAlive: true),
            Whole(status: 200, fields: ["X: y"], body: "to the end"),
            Whole(status: 200, fields: ["Connection: keep-alive", "Content-Length: 2"], body: "ok", keepsAlive: true),
            Whole(status: 204, fields: ["Content-Length: 7"], keepsAlive: true),
            Whole(status: 304, fields: ["ETag: \"1\"", "Transfer-Encoding: chunked"], keepsAlive: true),
            Whole(status: 200, fields: ["Content-Length: 1"], body: "1", keepsAlive: true),
            Whole(status: 503, fields: ["Connection: close", "Content-Length: 3, 3"], body: "no!"),
            Whole(status: 200, fields: ["Folded: a b", "Content-Length: 0"], keepsAlive: true),
        ]
        for (reply, whole) in zip(Self.replies, expected) { #expect(read(reply) == .success(whole), "\(reply)") }
    }

    @Test func `any split gives the same response, and a truncated one is never complete`() {
        for reply in Self.replies {
            let bytes = Array(reply.utf8)
            let whole = read(reply)
            for cut in 0...bytes.count {
                #expect(read([bytes[..<cut], bytes[cut...]]) == whole, "\(cut) of \(reply)")
                guard cut < bytes.count else { continue }
                switch read([bytes[..<cut]]) {
                case .failure(let failure): #expect(cut == 0 ? failure == .noResponse : failure != .noResponse)
                case .success(let part):
                    // Only content without a length ends with its connection.
                    #expect(reply.hasPrefix("HTTP/1.0") && !part.keepsAlive && part.fields == ["X: y"], "\(cut)")
                }
            }
            #expect(read(bytes.indices.map { bytes[$0...$0] }) == whole)
        }
    }

    @Test func `a randomly damaged response gives the same result in any pieces`() {
        for seed in UInt64(1)...2_000 {
            var random = SeededGenerator(seed: seed)
            var bytes = Array(Self.replies[random.uniform(in: 0..<Self.replies.count)].utf8)
            for _ in 0..<random.uniform(in: 1..<4) {
                guard !bytes.isEmpty else { break }
                let place = random.uniform(in: 0..<bytes.count)
                switch random.uniform(in: 0..<4) {
                case 0: bytes[place] = UInt8(random.uniform(in: 0..<256))
                case 1: bytes.remove(at: place)
                case 2: bytes.insert([0, 10, 13, 32, 48, 255][random.uniform(in: 0..<6)], at: place)
                default: bytes = Array(bytes[..<max(1, place)])
                }
            }
            let cut = random.uniform(in: 0..<(bytes.count + 1))
            let pieces = read([bytes[..<cut], bytes[cut...]])
            #expect(read([bytes[...]]) == pieces, "seed \(seed)")
            #expect(read(bytes.indices.map { bytes[$0...$0] }) == pieces, "seed \(seed)")
        }
    }

    @Test(arguments: [
        "garbage\r\n\r\n", "\0\0\0\0", "\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 99 Low\r\n\r\n", "HTTP/1.1 020 Low\r\n\r\n", "HTTP/1.1 2000 High\r\n\r\n", "HTTP/1.1 OK\r\n\r\n",
        "HTTP/1.x 200 OK\r\n\r\n", "HTTP/1.1 200 O\0K\r\n\r\n", "HTTP/1.1 200 OK\nA: b\n\n",
        "HTTP/1.1 200 OK\rA: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n", "HTTP/1.1 200 OK\r\nA b\r\n\r\n", "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: b\r\n\r\n", "HTTP/1.1 200 OK\r\n A: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n1",
        "HTTP/1.1 200 OK\r\nContent-Length: 1 2\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\n1",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n12",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: ,\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\n1",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n12\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\n1\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: \0\r\n\r\n",
    ])
    func `invalid responses are rejected`(reply: String) {
        guard case .failure(.malformed(let reason)) = read(reply) else {
            Issue.record("\(reply): \(read(reply))")
            return
        }
        #expect(reason.hasSuffix("."))
    }

    @Test func `endless parts are rejected at their limits`() {
        let long = String(repeating: "x", count: 70_000)
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        for reply in [
            "HTTP/1.1 200 " + long, "HTTP/1.1 200 OK\r\nA: " + long,
            "HTTP/1.1 200 OK\r\n" + String(repeating: "A: b\r\n", count: 12_000),
            String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 17), chunked + "1;" + long,
            chunked + "0\r\n" + long, chunked + "0\r\n" + String(repeating: "A: b\r\n", count: 12_000),
        ] {
            guard case .failure(.malformed) = read(reply) else {
                Issue.record("\(reply.prefix(60))")
                return
            }
        }
    }

    @Test func `a response to HEAD has no content, whatever its fields say`() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        for reply in ["HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", chunked] {
            guard case .success(let whole) = read(reply, isHead: true) else {
                Issue.record("\(reply)")
                return
            }
            #expect(whole.status == 200 && whole.body.isEmpty && whole.keepsAlive)
        }
    }

    @Test func `a connection is not reused after contradicting lengths or surplus bytes`() {
        let both = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n1\r\nx\r\n0\r\n\r\n"
        for reply in [both, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n"] {
            guard case .success(let whole) = read(reply) else {
                Issue.record("\(reply)")
                return
            }
            #expect(whole.body == "x" && !whole.keepsAlive)
        }
    }

    @Test func `content whose last transfer coding is not chunked ends with the connection, RFC 9112 §6.3`() {
        for (coding, content) in [
            ("gzip", "2\r\nok"), ("identity", "ok"), ("chunked, gzip", "2\r\nok"), ("x\r\nTransfer-Encoding: y", "ok"),
            // The length is overridden.
            ("gzip\r\nContent-Length: 1", "ok"),
        ] {
            guard case .success(let whole) = read("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(coding)\r\n\r\n\(content)")
            else {
                Issue.record("\(coding)")
                continue
            }
            #expect(whole.body == content && !whole.keepsAlive, "\(coding)")
            let name = coding.split(separator: "\r\n").first ?? ""
            #expect(whole.fields.first == "Transfer-Encoding: \(name)")
        }
    }

    @Test func `other codings under chunked stay in the content and are named, RFC 9112 §7`() {
        let reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        guard case .success(let whole) = read(reply) else {
            Issue.record("rejected")
            return
        }
        #expect(whole.body == "ok" && whole.keepsAlive && whole.fields == ["Transfer-Encoding: gzip, Chunked"])
    }

    @Test func `values that are not UTF-8 are read as Latin-1`() {
        var bytes = Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: caf".utf8)
        bytes += [0xE9, 13, 10, 13, 10]
        guard case .success(let whole) = read([bytes[...]]) else {
            Issue.record("rejected")
            return
        }
        #expect(whole.fields.last == "X: caf\u{e9}")
    }
}
