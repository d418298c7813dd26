import LarderHTTP
import TestSupport
import Testing

@Suite("Content codings", .oneMinute)
struct ContentCodingTests {
    @Test(
        "Accept-Encoding is answered by RFC 9110 §12.5.3",
        arguments: [
            ("gzip", .gzip), ("deflate", .deflate), ("GZip", .gzip), ("x-gzip", .gzip), ("gzip, deflate, br", .gzip),
            ("deflate, gzip", .gzip), ("gzip;q=0.5, deflate", .deflate), ("gzip;q=0, deflate;q=0", nil), ("*", .gzip),
            ("gzip;q=0, *", .deflate), ("gzip;q=0.001", .gzip), ("gzip;q=0.000", nil), ("br", nil), ("", nil),
            ("identity", nil), ("identity, gzip", .gzip), ("identity;q=0.5, gzip;q=0.4", nil), ("gzip ; Q=0.8", .gzip),
            ("identity;q=0", nil), ("*;q=0", nil), ("gzip;q=2", nil), ("gzip;q=0.1234", nil), ("gzip;q=-1", nil),
            ("gzip;q=x, deflate;q=0.1", .deflate), (",, gzip ,", .gzip), ("br;q=1.0, gzip;q=0.8, *;q=0.1", .gzip),
        ] as [(String, ContentCoding?)]
    )
    func negotiation(text: String, expected: ContentCoding?) {
        #expect(ContentCoding.negotiated(text) == expected)
    }

    @Test func `a body of few bytes that would be larger than 64 MiB is an error`() throws {
        let coded = try #require(ContentCoding.gzip.encode([UInt8](repeating: 0, count: (64 << 20) + 1)))
        #expect(coded.count < 1 << 20)
        let error = #expect(throws: (any Error).self) { _ = try ContentCoding.gzip.decode(coded) }
        #expect(error.map { "\($0)".contains("exceeds") } == true)
    }

    @Test func `several lines count as one`() {
        var fields = Fields()
        fields.add(.acceptEncoding, "gzip;q=0")
        fields.add(.acceptEncoding, "deflate;q=0.3")
        #expect(fields.combined(.acceptEncoding).flatMap { ContentCoding.negotiated($0) } == .deflate)
    }
}
