import LarderHTTP
import LarderHTTPWire
import TestSupport
import Testing

@Suite("Chunked decoder", .oneMinute) struct ChunkedDecoderTests {
    /// Decodes byte by byte; nil if the body is not complete.
    private func decode(_ text: String, _ limits: ChunkedDecoder.Limits) -> Result<String?, Rejection> {
        var decoder = ChunkedDecoder(limits)
        var body: [UInt8] = []
        let bytes = Array(text.utf8)
        do throws(Rejection) {
            for index in bytes.indices where !decoder.isDone {
                _ = try decoder.decode(bytes.span.extracting(index..<(index + 1)), from: 0, into: &body)
            }
        } catch { return .failure(error) }
        return .success(decoder.isDone ? String(decoding: body, as: UTF8.self) : nil)
    }

    private func isRejected(_ text: String, _ limits: ChunkedDecoder.Limits) -> Status? {
        if case .failure(let error) = decode(text, limits) { error.status } else { nil }
    }

    @Test(arguments: [
        "5 \r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\na trailer\r\n\r\n", "000000005\r\nhello\r\n0\r\n\r\n",
    ])
    func `only a client accepts spaces, invalid trailers and long sizes`(text: String) {
        #expect(decode(text, .response) == .success("hello"))
        #expect(isRejected(text, .request(bodyBytesMaximum: 100)) == .badRequest)
    }

    @Test func `a body above the limit is rejected at its size`() {
        let limits = ChunkedDecoder.Limits.request(bodyBytesMaximum: 5)
        #expect(decode("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", limits) == .success("abcde"))
        #expect(isRejected("3\r\nabc\r\n3\r\n", limits) == .contentTooLarge)
    }

    @Test func `extensions are limited in all for a server and in each chunk for a client`() {
        let chunk = "1;" + String(repeating: "x", count: 4_000) + "\r\na\r\n"
        let body = String(repeating: chunk, count: 3) + "0\r\n\r\n"
        #expect(decode(body, .response) == .success("aaa"))
        #expect(isRejected(body, .request(bodyBytesMaximum: 100)) == .requestHeaderFieldsTooLarge)
        #expect(isRejected("1;" + String(repeating: "x", count: 5_000), .response) == .requestHeaderFieldsTooLarge)
    }

    @Test func `a body without its last chunk is not complete`() {
        #expect(decode("5\r\nhello\r\n", .response) == .success(nil))
        #expect(decode("5\r\nhello\r\n0\r\n", .response) == .success(nil))
    }
}

@Suite("Head scanner", .oneMinute) struct HeadScannerTests {
    @Test func `a request's head is found in any pieces, after empty lines`() {
        let bytes = Array("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\nrest".utf8)
        for cut in 0...bytes.count {
            var scanner = HeadScanner(skipsEmptyLines: true)
            var outcome = scanner.scan(bytes.span.extracting(0..<cut))
            if case .incomplete = outcome { outcome = scanner.scan(bytes.span) }
            guard case .head(let range) = outcome else {
                Issue.record("cut at \(cut)")
                continue
            }
            #expect(String(decoding: bytes[range], as: UTF8.self) == "GET / HTTP/1.1\r\nHost: h")
            #expect(scanner.lineCount == 14 && scanner.scanned == bytes.count - 4)
        }
    }

    @Test(arguments: ["GET / HTTP/1.1\nHost: h\r\n\r\n", "GET / HTTP/1.1\rHost: h\r\n\r\n", "GET / HTTP/1.1\r\n\n"])
    func `bare line ends are malformed`(text: String) {
        var scanner = HeadScanner(skipsEmptyLines: true)
        let bytes = Array(text.utf8)
        guard case .malformed = scanner.scan(bytes.span) else {
            Issue.record("accepted")
            return
        }
    }
}
