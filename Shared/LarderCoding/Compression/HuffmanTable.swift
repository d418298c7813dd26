/// A table that decodes a Huffman code by looking at its bits (RFC 1951 §3.2.2).
///
/// The first level is indexed by the next `primaryBits` bits; longer codes lead to a second table behind it. An entry has the
/// length of the code in its low 8 bits, extra bits (or the second table's index width) in the next 5, then flags, and the value,
/// base or offset in the high 16. Zero is no code.
struct HuffmanTable: Sendable {
    static let literal: UInt32 = 1 << 13
    static let endOfBlock: UInt32 = 1 << 14
    static let subtable: UInt32 = 1 << 15

    let primaryBits: Int
    private(set) var entries: [UInt32]

    /// - Parameter capacity: the most entries, second tables included.
    init(primaryBits: Int, capacity: Int) {
        self.primaryBits = primaryBits
        entries = [UInt32](repeating: 0, count: capacity)
    }

    /// The codes that may be incomplete.
    enum Completeness {
        case complete
        /// One code of one bit, or none at all, as zlib allows for distances.
        case singleAllowed
    }

    /// Builds the table for codes of these lengths; 0 for symbols without a code.
    ///
    /// - Returns: false if the lengths are no code: too many or too few of a length.
    mutating func build(_ lengths: ArraySlice<UInt8>, symbols: [UInt32], _ completeness: Completeness) -> Bool {
        var counts = InlineArray<16, Int>(repeating: 0)
        for length in lengths { counts[Int(length)] += 1 }
        let used = lengths.count - counts[0]
        counts[0] = 0
        var left = 1
        var longest = 0
        for length in 1...15 {
            left = left * 2 - counts[length]
            if left < 0 { return false }
            if counts[length] > 0 { longest = length }
        }
        if left > 0 {
            guard completeness == .singleAllowed, used == 0 || longest == 1 else { return false }
        }
        var next = InlineArray<16, Int>(repeating: 0)
        var code = 0
        for length in 1...15 {
            code = (code + counts[length - 1]) << 1
            next[length] = code
        }
        let primary = 1 << primaryBits
        for index in 0..<primary { entries[index] = 0 }
        let secondBits = max(0, longest - primaryBits)
        var free = primary
        for (symbol, length) in lengths.enumerated() where length > 0 {
            let length = Int(length)
            let reversed = Self.reversed(next[length], length)
            next[length] += 1
            if length <= primaryBits {
                let entry = symbols[symbol] | UInt32(length)
                var index = reversed
                while index < primary {
                    entries[index] = entry
                    index += 1 << length
                }
            } else {
                let prefix = reversed & (primary - 1)
                if entries[prefix] == 0 {
                    guard free + (1 << secondBits) <= entries.count else { return false }
                    entries[prefix] =
                        UInt32(free) << 16 | Self.subtable | UInt32(secondBits) << 8 | UInt32(primaryBits)
                    for index in free..<(free + (1 << secondBits)) { entries[index] = 0 }
                    free += 1 << secondBits
                }
                let offset = Int(entries[prefix] >> 16)
                // A second table's entry consumes only the bits after those that led to it.
                let entry = symbols[symbol] | UInt32(length - primaryBits)
                var index = reversed >> primaryBits
                while index < 1 << secondBits {
                    entries[offset + index] = entry
                    index += 1 << (length - primaryBits)
                }
            }
        }
        return true
    }

    private static func reversed(_ code: Int, _ length: Int) -> Int {
        var (code, result) = (code, 0)
        for _ in 0..<length {
            result = result << 1 | code & 1
            code >>= 1
        }
        return result
    }

    // MARK: What symbols mean

    /// Literals, the end of a block, and the bases and extra bits of lengths (RFC 1951 §3.2.5). 286 and 287 mean nothing.
    static let lengthSymbols: [UInt32] = {
        let bases = [
            3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
            227,
            258,
        ]
        let extra = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0]
        var symbols = (0..<256).map { UInt32($0) << 16 | literal }
        symbols.append(endOfBlock)
        for (base, extra) in zip(bases, extra) { symbols.append(UInt32(base) << 16 | UInt32(extra) << 8) }
        return symbols + [invalid, invalid]
    }()

    /// The bases and extra bits of distances. 30 and 31 mean nothing.
    static let distanceSymbols: [UInt32] = {
        var symbols: [UInt32] = []
        var base = 1
        for symbol in 0..<30 {
            let extra = max(0, symbol / 2 - 1)
            symbols.append(UInt32(base) << 16 | UInt32(extra) << 8)
            base += 1 << extra
        }
        return symbols + [invalid, invalid]
    }()

    /// The lengths of codes that describe codes.
    static let lengthCodeSymbols: [UInt32] = (0..<19).map { UInt32($0) << 16 }

    /// A symbol with a code that must not be used: base 0 is invalid.
    static let invalid: UInt32 = 0

    /// The fixed codes (RFC 1951 §3.2.6).
    static let fixedLengths: [UInt8] =
        [UInt8](repeating: 8, count: 144) + [UInt8](repeating: 9, count: 112) + [UInt8](repeating: 7, count: 24)
        + [UInt8](repeating: 8, count: 8)
}
