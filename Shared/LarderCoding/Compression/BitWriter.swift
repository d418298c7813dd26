/// Appends bits to bytes, the first bit lowest (RFC 1951 §3.1.1).
struct BitWriter: Sendable {
    private(set) var bits: UInt64 = 0
    /// The bits that do not fill a byte yet: 0 to 7 between two calls.
    private(set) var bitCount = 0

    /// - Parameter count: at most 48.
    mutating func write(_ value: UInt64, _ count: Int, to output: inout [UInt8]) {
        bits |= value << UInt64(bitCount)
        bitCount += count
        while bitCount >= 8 {
            output.append(UInt8(truncatingIfNeeded: bits))
            bits >>= 8
            bitCount -= 8
        }
    }

    /// Fills the last byte with zeros.
    mutating func align(to output: inout [UInt8]) {
        if bitCount > 0 { write(0, 8 - bitCount, to: &output) }
    }

    /// Lets `body` write `count` bits into memory that has room for them.
    ///
    /// - Parameter body: takes the pending bits, their number and the memory, which has 8 bytes more than the bits need; stores whole
    ///   bytes from its beginning, and leaves the rest in the bits.
    mutating func writeMany(
        _ count: Int,
        to output: inout [UInt8],
        _ body: (_ bits: inout UInt64, _ bitCount: inout Int, _ memory: UnsafeMutableRawPointer) -> Void
    ) {
        let start = output.count
        let bytes = (bitCount + count) >> 3
        output.append(contentsOf: repeatElement(0, count: bytes + 8))
        unsafe output.withUnsafeMutableBytes { output in
            unsafe body(&bits, &bitCount, output.baseAddress.unsafelyUnwrapped.advanced(by: start))
        }
        output.removeLast(8)
    }
}
