import TestSupport
import Testing

@testable import LarderCoding

@Suite("JSON", .oneMinute)
struct JSONTests {
    @Test(
        "rejects what RFC 8259 does not allow, and says where",
        arguments: [
            ("", 0), ("{", 1), ("[1,]", 3), ("{\"a\":1,}", 7), ("01", 0), ("1.", 2), ("+1", 0), ("nul", 0),
            ("\"\u{01}\"", 1),
            ("\"\\x\"", 1), ("\"\\ud800\"", 1), ("{\"a\":1,\"a\":2}", 7), ("[1] 2", 4), ("1e999", 0), ("'a'", 0),
            ("\"abc", 0),
        ]
    )
    func rejects(text: String, offset: Int) throws {
        let error = try #require(throws: JSONError.self) { _ = try JSONParser.parse(Array(text.utf8)) }
        #expect(error.offset == offset, "\(error)")
    }

    @Test func `bytes that are not UTF-8 are rejected`() {
        #expect(throws: JSONError.self) { try JSONParser.parse([0x22, 0xC3, 0x28, 0x22]) }
    }

    @Test func `integers are exact over the whole 64-bit range`() throws {
        #expect(try JSONParser.parse(Array("9223372036854775807".utf8)) == .integer(.max))
        #expect(try JSONParser.parse(Array("-9223372036854775808".utf8)) == .integer(.min))
        #expect(try JSONParser.parse(Array("9007199254740993".utf8)) == .integer(9_007_199_254_740_993))
    }

    @Test func `parsing time per member is constant, and a duplicate name among many is found`() throws {
        // Comparing the names of one megabyte pairwise would take minutes for one request.
        let names = (0..<100_000).map { "\"n\($0)\":0" }.joined(separator: ",")
        #expect(try JSONParser.parse(Array("{\(names)}".utf8)).object?.members.count == 100_000)
        for twice in ["n0", "n15", "n99999"] {
            let error = #expect(throws: JSONError.self) {
                try JSONParser.parse(Array("{\(names),\"\(twice)\":1}".utf8))
            }
            #expect(error?.reason.contains("twice") == true)
        }
    }

    @Test func `a JSON pointer escapes ~ and /, also before a combining character`() {
        #expect(JSONPointer.escape("a/b~c") == "a~1b~0c")
        #expect(JSONPointer.escape("/\u{301}~\u{301}") == "~1\u{301}~0\u{301}")
    }

    @Test func `the nesting depth is limited`() {
        let deep = Array(String(repeating: "[", count: 100_000).utf8)
        #expect(throws: JSONError.self) { try JSONParser.parse(deep) }
    }

    @Test func `random values survive encoding and parsing`() throws {
        let seed: UInt64 = 0x5EED_0002
        var random = SplitMix(state: seed)
        for round in 0..<500 {
            let value = tree(&random, depth: 0)
            var writer = JSONWriter()
            writer.value(value)
            #expect(try JSONParser.parse(writer.bytes) == value, "seed \(seed), round \(round)")
        }
    }

    private struct SplitMix: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }

    private func tree(_ random: inout SplitMix, depth: Int) -> JSONValue {
        switch Int.random(in: 0..<(depth > 4 ? 5 : 7), using: &random) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &random))
        case 2: return .integer(Int64.random(in: .min ... .max, using: &random))
        case 3: return .number(Double.random(in: -1e9...1e9, using: &random) + 0.5)
        case 4:
            let scalars = (0..<Int.random(in: 0..<20, using: &random)).compactMap { _ in
                Unicode.Scalar(UInt32.random(in: 0...0x10FFFF, using: &random))
            }
            return .string(String(String.UnicodeScalarView(scalars)))
        case 5: return .array((0..<Int.random(in: 0..<5, using: &random)).map { _ in tree(&random, depth: depth + 1) })
        default:
            var object = JSONObject()
            for index in 0..<Int.random(in: 0..<5, using: &random) {
                object["k\(index)\"\n"] = tree(&random, depth: depth + 1)
            }
            return .object(object)
        }
    }
}

@Suite("Base64, digests and hashes", .oneMinute)
struct CodingTests {
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy"),
    ])
    func `the examples of RFC 4648 are encoded and decoded`(text: String, encoded: String) {
        #expect(Base64.encode(Array(text.utf8)) == encoded)
        #expect(Base64.decode(encoded) == Array(text.utf8))
        let unpadded = encoded.replacing("=", with: "")
        #expect(Base64.encodeURL(Array(text.utf8)) == unpadded)
        #expect(Base64.decodeURL(unpadded) == Array(text.utf8))
    }

    @Test(arguments: ["Zg", "Zg=", "Z===", "Zh==", "Zm9v=", "Zm 9", "Zm-_"])
    func `Base64 with wrong padding, foreign characters or surplus bits is rejected`(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test func `digests match the examples of FIPS 180-4`() {
        #expect(hexEncode(SHA256.hash([])) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(
            hexEncode(SHA256.hash(Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8)))
                == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        )
        #expect(
            hexEncode(SHA256.hash(Array(repeating: 0x61, count: 1_000)))
                == "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"
        )
        #expect(hexEncode(SHA1.hash(Array("abc".utf8))) == "a9993e364706816aba3e25717850c26c9cd0d89d")
    }

    @Test func `changing any bit changes the hash`() {
        var bytes = (0..<100).map { UInt8($0) }
        let first = ContentHash.hash128(bytes.span)
        for bit in 0..<800 {
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            let other = ContentHash.hash128(bytes.span)
            #expect(first.0 != other.0 && first.1 != other.1)
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
        }
        let same = ContentHash.hash128(bytes.span)
        #expect(first == same)
    }

    @Test func `zero bytes of different lengths have different hashes`() {
        let hashes = (0..<64).map { ContentHash.hash64([UInt8](repeating: 0, count: $0).span) }
        #expect(Set(hashes).count == 64)
    }
}
