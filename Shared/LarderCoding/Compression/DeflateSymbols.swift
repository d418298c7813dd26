/// The literals and matches of a block, and how often each symbol occurs.
struct DeflateSymbols: Sendable {
    static let countMaximum = 16_384
    static let endOfBlock = 256
    /// The number of symbols for literals and lengths; those for distances follow in `frequencies`.
    static let literalCount = 286
    static let distanceCount = 30

    /// The length above 16 bits of distance; a literal has the distance 0.
    var symbols = [UInt32](repeating: 0, count: countMaximum)
    var count = 0
    var frequencies = [UInt32](repeating: 0, count: literalCount + distanceCount)
    /// The bits that follow the codes of lengths and distances.
    var extraBits = 0

    mutating func removeAll() {
        count = 0
        extraBits = 0
        for index in frequencies.indices { frequencies[index] = 0 }
    }

    /// The symbol above 256 of a length from 3 to 258, and its extra bits (RFC 1951 §3.2.5).
    @inline(__always)
    static func lengthCode(_ length: Int) -> (code: Int, extraBits: Int) {
        let value = length &- 3
        if value < 8 { return (257 &+ value, 0) }
        if value == 255 { return (285, 0) }
        let bits = 61 &- value.leadingZeroBitCount
        return (257 &+ 4 &* (bits &+ 1) &+ (value &>> bits) & 3, bits)
    }

    /// The symbol of a distance from 1 to 32,768, and its extra bits.
    @inline(__always)
    static func distanceCode(_ distance: Int) -> (code: Int, extraBits: Int) {
        let value = distance &- 1
        if value < 4 { return (value, 0) }
        let bits = 62 &- value.leadingZeroBitCount
        return (2 &* (bits &+ 1) &+ (value &>> bits) & 1, bits)
    }
}
