/// A Huffman code of a JPEG (ITU T.81 §C), and the look-up table that decodes it.
///
/// The table is a part of an array that holds the tables of a scan one behind another: first an entry for each value of the next
/// `lookBits` bits, then what longer codes need. An entry has the bits to consume in its low 8 bits, the number of zero coefficients
/// in the next 4, and in the next 4 the size of a value that is still to be read. If the value is in the looked-up bits too, these
/// are 0, and it is in the high 16 bits, and its bits are consumed with the code's. Zero is no code.
struct JPEGHuffmanCode: Sendable {
    static let lookBits = 10
    /// For each length from 0 to 16, the first code beyond that length's, as 16 bits.
    static let limits = 1 << lookBits
    /// For each length, what is added to a code to get its symbol's index.
    static let offsets = limits + 17
    static let symbols = offsets + 17
    /// The entries of a table.
    static let tableLength = symbols + 256

    /// The number of codes of each length from 1 to 16.
    private let counts: ArraySlice<UInt8>
    private let symbols: ArraySlice<UInt8>

    /// - Parameters:
    ///   - isDC: whether symbols are sizes of differences, at most 15.
    init(counts: ArraySlice<UInt8>, symbols: ArraySlice<UInt8>, isDC: Bool) throws(ImageError) {
        self.counts = counts
        self.symbols = symbols
        var left = 1
        for count in counts {
            left = left * 2 - Int(count)
            guard left >= 0 else {
                throw ImageError(.damaged, "The JPEG has a Huffman table of too many codes.")
            }
        }
        if isDC, let symbol = symbols.first(where: { $0 > 15 }) {
            throw ImageError(.damaged, "The JPEG has a Huffman table with a difference of \(symbol) bits.")
        }
    }

    /// Writes the table into `table`, from `start` on.
    func build(into table: inout [UInt32], at start: Int) {
        let size = 1 << Self.lookBits
        for index in start..<(start + Self.tableLength) { table[index] = 0 }
        for (index, symbol) in symbols.enumerated() { table[start + Self.symbols + index] = UInt32(symbol) }
        var code = 0
        var index = 0
        for length in 1...16 {
            let count = Int(counts[counts.startIndex + length - 1])
            table[start + Self.offsets + length] = UInt32(truncatingIfNeeded: index - code)
            if length <= Self.lookBits {
                let spread = 1 << (Self.lookBits - length)
                for _ in 0..<count {
                    let symbol = symbols[symbols.startIndex + index]
                    let first = code << (Self.lookBits - length)
                    for rest in 0..<spread where first + rest < size {
                        table[start + first + rest] = Self.entry(symbol, length, rest)
                    }
                    code += 1
                    index += 1
                }
            } else {
                code += count
                index += count
            }
            table[start + Self.limits + length] = UInt32(code << (16 - length))
            code <<= 1
        }
    }

    /// - Parameter rest: the bits behind the code, as many as are looked up.
    private static func entry(_ symbol: UInt8, _ length: Int, _ rest: Int) -> UInt32 {
        let size = Int(symbol & 15)
        let run = UInt32(symbol >> 4) << 8
        let restBits = lookBits - length
        guard size > 0, size <= restBits else { return UInt32(size) << 12 | run | UInt32(length) }
        let bits = rest >> (restBits - size)
        let value = bits < 1 << (size - 1) ? bits - (1 << size) + 1 : bits
        return UInt32(truncatingIfNeeded: value) << 16 | run | UInt32(length + size)
    }
}
