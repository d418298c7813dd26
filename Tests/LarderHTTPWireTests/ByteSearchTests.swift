import LarderHTTP
import TestSupport
import Testing

@testable import LarderHTTPWire

@Suite("Searches in bytes", .oneMinute) struct ByteSearchTests {
    private static let bytes: [UInt8] = [
        0x00, 0x09, 0x0A, 0x0D, 0x1F, 0x20, 0x21, 0x61, 0x7E, 0x7F, 0x80, 0x8D, 0xA0, 0xFF,
    ]

    @Test func `the first control character is found at each place beside each byte`() {
        for found in Self.bytes {
            for other in Self.bytes where other >= 0x20 && other != 0x7F {
                for count in 1..<20 {
                    for place in 0..<count {
                        var bytes = [UInt8](repeating: other, count: count)
                        bytes[place] = found
                        // A later control character is not the first one.
                        if place + 1 < count { bytes[count - 1] = 0x0D }
                        for start in 0...count {
                            let expected = (start..<count).first { bytes[$0] < 0x20 || bytes[$0] == 0x7F } ?? count
                            let cr = (start..<count).first { bytes[$0] == 0x0D } ?? count
                            // An expectation for each would take seconds.
                            guard ByteSearch.firstControl(in: bytes.span, from: start) == expected,
                                ByteSearch.firstCR(in: bytes.span, from: start) == cr
                            else {
                                Issue.record("from \(start) in \(bytes)")
                                return
                            }
                        }
                    }
                }
            }
        }
    }

    @Test func `a head is found in one piece as in pieces of one byte`() {
        let head = Array("GET /a HTTP/1.1\r\nHost: name\r\nX: \t a\u{E9} long value of a field\r\n\r\nrest".utf8)
        for place in head.indices {
            for byte in Self.bytes {
                var bytes = head
                bytes[place] = byte
                var scanner = HeadScanner(skipsEmptyLines: true)
                let whole = String(describing: scanner.scan(bytes.span))
                var inPieces = HeadScanner(skipsEmptyLines: true)
                var outcome = HeadScanner.Outcome.incomplete
                for count in 1...bytes.count {
                    guard case .incomplete = outcome else { break }
                    outcome = inPieces.scan(bytes.span.extracting(..<count))
                }
                #expect(whole == String(describing: outcome), "byte \(byte) at \(place)")
                #expect(scanner.scanned == inPieces.scanned && scanner.lineCount == inPieces.lineCount)
            }
        }
    }
}
