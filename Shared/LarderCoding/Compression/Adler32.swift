/// The checksum at the end of a zlib stream (RFC 1950 §8.2).
package struct Adler32: Sendable {
    private var a: UInt32 = 1
    private var b: UInt32 = 0

    package init() {}

    package var value: UInt32 { b << 16 | a }

    package mutating func add(_ bytes: [UInt8], _ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count, "The bytes are there.")
        var (a, b) = (a, b)
        unsafe bytes.withUnsafeBufferPointer { bytes in
            var index = range.lowerBound
            while index < range.upperBound {
                // So many bytes cannot overflow 32 bits.
                let end = min(range.upperBound, index + 5_552)
                while end - index >= 16 {
                    // Sixteen steps at once: b grows by 16 times the old a, and by each byte as often as it is still added.
                    var sum: UInt32 = 0
                    var weighted: UInt32 = 0
                    for offset in 0..<16 {
                        let byte = unsafe UInt32(bytes[index &+ offset])
                        sum &+= byte
                        weighted &+= byte &* UInt32(truncatingIfNeeded: 16 &- offset)
                    }
                    b &+= a &* 16 &+ weighted
                    a &+= sum
                    index += 16
                }
                while index < end {
                    a &+= unsafe UInt32(bytes[index])
                    b &+= a
                    index += 1
                }
                a %= 65_521
                b %= 65_521
            }
        }
        self.a = a
        self.b = b
    }
}
