/// Makes unique keys.
package enum RandomKey {
    /// A random UUID (RFC 9562 §5.4) in lower case. Every enqueued operation needs one: it is made of Swift's random numbers,
    /// which the simulation draws from its seed, and not of those of `UUID`.
    package static func make() -> String {
        var generator = SystemRandomNumberGenerator()
        let high: UInt64 = generator.next() & ~0xF000 | 0x4000
        let low: UInt64 = generator.next() & ~(3 << 62) | 1 << 63
        var text: [UInt8] = []
        text.reserveCapacity(36)
        for (number, half) in [high, low].enumerated() {
            for nibble in 0..<16 {
                let digit = UInt8(truncatingIfNeeded: half >> UInt64(60 - 4 * nibble)) & 15
                text.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit)
                // Hyphens follow the digits 8, 12, 16 and 20.
                if nibble % 4 == 3, (7..<20).contains(16 * number + nibble) { text.append(UInt8(ascii: "-")) }
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
