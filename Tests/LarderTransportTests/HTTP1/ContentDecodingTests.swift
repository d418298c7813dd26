import LarderCoding
import LarderEvents
import LarderHTTP
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Decoding of content codings", .oneMinute)
struct ContentDecodingTests {
    private static let text = Array((0..<500).map { "Line \($0 * $0 % 1_009) of the page.\n" }.joined().utf8)

    private static func coded(_ content: [UInt8], _ format: CompressionFormat = .gzip) -> [UInt8] {
        (try? Zlib.system.get().deflated(content, format, .good)) ?? []
    }

    private static func head(_ coding: String, _ count: Int) -> String {
        "HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nContent-Length: \(count)\r\nETag: \"1-gzip\"\r\n"
            + "Vary: Accept-Encoding\r\n\r\n"
    }

    /// Answers one request with these bytes.
    private func exchange(
        _ fields: Fields = [:],
        _ method: Method = .get,
        limit: Int = 64 << 20,
        configuration: SocketTransport.Configuration = SocketTransport.Configuration(),
        reply: [[UInt8]]
    ) async throws -> Result<TransportResponse, TransportError> {
        let server = try WireServer()
        let transport = SocketTransport(configuration, clock: ManualClock())
        let url = "http://127.0.0.1:\(server.port)/x"
        let request = TransportRequest(method: method, url: url, fields: fields, bodyLimit: limit)
        let sending = Task { () -> Result<TransportResponse, TransportError> in
            do throws(TransportError) { return .success(try await transport.send(request)) } catch {
                return .failure(error)
            }
        }
        let peer = try await server.accept()
        _ = try await peer.readHead()
        for piece in reply { await peer.send(piece) }
        peer.finish()
        return await sending.value
    }

    @Test func `digests of the coded content are removed with the coding`() async throws {
        let coded = Self.coded(Self.text)
        let digests = "Content-Digest: sha-256=:eA==:\r\nRepr-Digest: sha-256=:eA==:\r\n"
        let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\(digests)Content-Length: \(coded.count)\r\n\r\n"
        let response = try await exchange(reply: [Array(head.utf8), coded]).get()
        #expect(response.body == Self.text)
        #expect(response.fields.allSatisfy { !$0.name.canonical.hasSuffix("digest") })
    }

    @Test func `failures before the first byte count as not sent, and a coding that was not offered as a reply`() {
        #expect(TransportError(.untrusted, "").kind == .unsent && TransportError(.unreachable, "").kind == .unsent)
        #expect(TransportError(.invalidRequest, "").kind == .invalidRequest)
        #expect(TransportError(.unsupportedCoding, "").kind == .unusable)
        #expect(TransportError(.interrupted, "").kind == .noReply)
    }

    private func failure(_ result: Result<TransportResponse, TransportError>) -> TransportError? {
        if case .failure(let error) = result { error } else { nil }
    }

    @Test(arguments: [("gzip", CompressionFormat.gzip), ("deflate", .zlib), ("deflate", .deflate), ("X-GZIP", .gzip)])
    func `compressed content is decoded, and its fields say that it is`(
        _ coding: String,
        _ format: CompressionFormat
    ) async throws {
        let coded = Self.coded(Self.text, format)
        let response = try await exchange(reply: [Array(Self.head(coding, coded.count).utf8), coded]).get()
        #expect(response.body == Self.text)
        #expect(!response.fields.contains(.contentEncoding) && !response.fields.contains(.contentLength))
        #expect(response.fields[.etag] == "\"1-gzip\"" && response.fields[.vary] == "Accept-Encoding")
        #expect(coded.count < Self.text.count / 3)
    }

    @Test func `content may arrive in pieces of any size`() throws {
        let seed: UInt64 = 0x00C0_DE11
        print("pieces with seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for (coding, format) in [(ContentCoding.gzip, CompressionFormat.gzip), (.deflate, .zlib), (.deflate, .deflate)]
        {
            let coded = Self.coded(Self.text, format)
            for round in 0..<60 {
                var decoder = ContentDecoder(coding, bytesMaximum: .max, ratioMaximum: 250)
                var (start, result) = (0, [UInt8]())
                while start < coded.count {
                    let end = min(coded.count, start + (round == 0 ? 1 : random.uniform(in: 1..<900)))
                    decoder.receive(Array(coded[start..<end]))
                    start = end
                    while let piece = try decoder.next() { result += piece }
                }
                try decoder.end()
                #expect(result == Self.text, "seed \(seed), round \(round)")
            }
        }
    }

    @Test func `truncated content is interrupted, at any byte`() throws {
        for (coding, format) in [(ContentCoding.gzip, CompressionFormat.gzip), (.deflate, .zlib), (.deflate, .deflate)]
        {
            let coded = Self.coded(Array(Self.text.prefix(300)), format)
            for count in 1..<coded.count {
                var decoder = ContentDecoder(coding, bytesMaximum: .max, ratioMaximum: 250)
                let error = #expect(throws: TransportError.self) {
                    decoder.receive(Array(coded.prefix(count)))
                    while try decoder.next() != nil {}
                    try decoder.end()
                }
                #expect(error?.code == .interrupted, "\(coding), \(count) bytes")
            }
        }
    }

    @Test func `damaged content and bytes after its end are interrupted, although their length is right`() async throws
    {
        let coded = Self.coded(Self.text)
        var damaged = coded
        damaged[coded.count - 6] ^= 1
        let wrong = try await exchange(reply: [Array(Self.head("gzip", coded.count).utf8), damaged])
        #expect(failure(wrong)?.code == .interrupted)
        #expect(failure(wrong)?.description.contains("'gzip'") == true)
        let long = Self.coded(Self.text, .zlib) + [0]
        let tail = try await exchange(reply: [Array(Self.head("deflate", long.count).utf8), long])
        #expect(failure(tail)?.description.contains("1 bytes follow its end") == true)
    }

    @Test func `content in a coding is an error without zlib, and the text says what to install`() throws {
        let missing = Zlib.load("libz.so.0.none")
        var decoder = ContentDecoder(.gzip, bytesMaximum: .max, ratioMaximum: 250, zlib: missing)
        decoder.receive(Self.coded(Self.text))
        let error = #expect(throws: TransportError.self) { try decoder.next() }
        #expect(error?.code == .unsupportedCoding && error?.description.contains("zlib1g") == true)
    }

    @Test func `content that expands beyond the limits is too large`() async throws {
        let zeros = Self.coded([UInt8](repeating: 0, count: 3 << 20))
        let head = Array(Self.head("gzip", zeros.count).utf8)
        #expect(failure(try await exchange(reply: [head, zeros]))?.code == .tooLarge)
        var configuration = SocketTransport.Configuration()
        configuration.expansionMaximum = 2_000
        let all = try await exchange(configuration: configuration, reply: [head, zeros]).get()
        #expect(all.body.count == 3 << 20)
        let coded = Self.coded(Self.text)
        let limited = try await exchange(
            limit: Self.text.count - 1,
            reply: [Array(Self.head("gzip", coded.count).utf8), coded]
        )
        #expect(failure(limited)?.code == .tooLarge)
    }

    @Test(arguments: ["br", "gzip, gzip", "zstd"])
    func `a coding that was not offered is an error that names it`(coding: String) async throws {
        let error = failure(try await exchange(reply: [Array(Self.head(coding, 2).utf8), [1, 2]]))
        #expect(error?.code == .unsupportedCoding && error?.description.contains("'\(coding)'") == true)
    }

    @Test func `a range in a coding is an error, because a part of it cannot be decoded`() async throws {
        let reply =
            "HTTP/1.1 206 Partial Content\r\nContent-Encoding: gzip\r\nContent-Range: bytes 0-1/9\r\n"
            + "Content-Length: 2\r\n\r\nab"
        let error = failure(try await exchange([.range: "bytes=0-1"], reply: [Array(reply.utf8)]))
        #expect(error?.code == .unsupportedCoding)
    }

    @Test func `a caller that negotiates, and one that turned it off, get content as received`() async throws {
        let coded = Self.coded(Self.text)
        let head = Array(Self.head("gzip", coded.count).utf8)
        let own = try await exchange([.acceptEncoding: "gzip"], reply: [head, coded]).get()
        #expect(own.body == coded && own.fields[.contentEncoding] == "gzip")
        var configuration = SocketTransport.Configuration()
        configuration.acceptsCompression = false
        #expect(try await exchange(configuration: configuration, reply: [head, coded]).get().body == coded)
    }

    @Test func `responses without content keep their fields, and identity is no coding`() async throws {
        let reply = Array(Self.head("gzip", 100).utf8)
        let head = try await exchange([:], .head, reply: [reply]).get()
        #expect(head.fields[.contentEncoding] == "gzip" && head.fields[.contentLength] == "100")
        let plain = try await exchange(reply: [Array((Self.head("identity", 2) + "ok").utf8)]).get()
        #expect(plain.body == Array("ok".utf8))
        // Servers that compress everything send nothing at all for empty content.
        #expect(try await exchange(reply: [Array(Self.head("gzip", 0).utf8)]).get().body.isEmpty)
    }
}
