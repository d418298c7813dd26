import TestSupport
import Testing

@testable import LarderMemory
@testable import LarderStorage

@Suite("Hashes of keys", .oneMinute)
struct KeyHashTests {
    @Test func `every character canonically equivalent to an ASCII one has the same hash`() {
        // A dictionary uses the equality under test.
        let ascii = Set((UInt8(0)..<128).map { String(UnicodeScalar($0)) })
        var found = 0
        // Beyond the third plane no character has a canonical equivalent.
        for value in UInt32(0x80)..<0x30000 {
            guard let scalar = UnicodeScalar(value), let place = ascii.firstIndex(of: String(scalar)) else { continue }
            found += 1
            let (text, twin) = (String(scalar), ascii[place])
            #expect(KeyHash.of(text, 7) == KeyHash.of(twin, 7), "U+\(String(value, radix: 16))")
            #expect(KeyHash.of("a/" + text, 7) == KeyHash.of("a/" + twin, 7), "U+\(String(value, radix: 16))")
        }
        #expect(found == 3)
    }

    @Test func `equal strings have equal hashes, whatever their storage`() {
        for length in 0...80 {
            let text = String(decoding: (0..<length).map { UInt8(33 + ($0 * 7 + length) % 90) }, as: UTF8.self)
            let copy = String(("x" + text + "y").dropFirst().dropLast())
            let characters = String(text.map { $0 })
            #expect(KeyHash.of(copy, 3) == KeyHash.of(text, 3) && KeyHash.of(characters, 3) == KeyHash.of(text, 3))
        }
        #expect(KeyHash.of("caf\u{E9}", 3) == KeyHash.of("cafe\u{301}", 3))
        #expect(KeyHash.of("K\u{301}", 3) == KeyHash.of("\u{212A}\u{301}", 3))
        let tier = MemoryTier<String, Int>(limits: .init(count: 10))
        tier.store(1, for: "300 \u{212A}")
        tier.store(2, for: "cafe\u{301}")
        #expect(tier["300 K"] == 1 && tier["caf\u{E9}"] == 2)
    }

    @Test func `texts that differ in a byte, a length or a seed differ in their hashes`() {
        var seen: [UInt64: String] = [:]
        var texts = (0..<20_000).map { "/v1/posts/post_\($0)?view=full" }
        texts += (0..<2_000).map { "\($0)" }
        texts +=
            (0..<70).map { String(repeating: "a", count: $0) } + (1..<70).map { String(repeating: "\0", count: $0) }
        for length in 1..<40 {
            for position in 0..<length {
                var bytes = [UInt8](repeating: 0x62, count: length)
                bytes[position] = 0x63
                texts.append(String(decoding: bytes, as: UTF8.self))
            }
        }
        for text in texts {
            let other = seen.updateValue(text, forKey: KeyHash.of(text, 1))
            #expect(other == nil, "\(text) and \(other ?? "")")
        }
        #expect(KeyHash.of("a", 1) != KeyHash.of("a", 2))
        let halves = [EntityKey(type: "ab", id: "c"), EntityKey(type: "a", id: "bc"), EntityKey(type: "", id: "abc")]
        #expect(Set(halves.map { KeyHash.of($0, 1) }).count == 3)
    }

    @Test func `hashes spread evenly over parts and buckets`() {
        var parts = [Int](repeating: 0, count: 16)
        var buckets = [Int](repeating: 0, count: 256)
        for number in 0..<16_000 {
            let hash = KeyHash.of("/v1/profiles/user_\(number)", 0)
            parts[Int(hash >> 48 & 15)] += 1
            buckets[Int(hash & 255)] += 1
        }
        // Expected: 1,000 in each part, and 62.5 in each bucket; the tolerance is six standard deviations.
        #expect(parts.allSatisfy { (820...1_180).contains($0) }, "\(parts)")
        #expect(buckets.allSatisfy { (15...110).contains($0) }, "\(buckets)")
    }
}
