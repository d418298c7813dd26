import LarderHTTP
import Testing

@testable import LarderEngine

@Suite("Reader of requests")
struct RequestReaderTests {
    /// How often the memory of a body is moved while it is read. Each move copies what has arrived.
    private func moves(_ head: String, _ pieces: [[UInt8]]) -> (count: Int, body: [UInt8]?) {
        var reader = RequestReader(headBytesMaximum: 16_384, bodyBytesMaximum: 64 << 20)
        var (moves, last, body): (Int, Int, [UInt8]?) = (0, 0, nil)
        for piece in [Array(head.utf8)] + pieces {
            var consumed = 0
            if case .request(let request) = reader.next(piece.span, &consumed) { body = request.body }
            let address = unsafe reader.body.withUnsafeBytes { Int(bitPattern: $0.baseAddress) }
            if address != last { moves += 1 }
            last = address
        }
        return (moves, body)
    }

    @Test func `a body of known length is not moved while it is read`() {
        let piece = [UInt8](repeating: 7, count: 16_384)
        let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \(64 * piece.count)\r\n\r\n"
        let (moves, body) = moves(head, Array(repeating: piece, count: 64))
        #expect(moves <= 2 && body?.count == 64 * piece.count)
    }

    @Test func `a chunked body is moved only when it has doubled`() {
        let chunk = Array("4000\r\n".utf8) + [UInt8](repeating: 7, count: 16_384) + Array("\r\n".utf8)
        let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        let (moves, body) = moves(head, Array(repeating: chunk, count: 64) + [Array("0\r\n\r\n".utf8)])
        #expect(moves <= 16 && body?.count == 64 * 16_384)
    }
}
