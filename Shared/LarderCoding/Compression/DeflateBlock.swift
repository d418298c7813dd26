/// Writes the symbols of a block in the shortest of the three forms (RFC 1951 §3.2.3).
struct DeflateBlock {
    private static let fixedLiterals = HuffmanCode(lengths: HuffmanTable.fixedLengths)
    private static let fixedDistances = HuffmanCode(lengths: [UInt8](repeating: 5, count: 30))
    private static let codeOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

    /// Writes a block and leaves the symbols.
    ///
    /// - Parameters:
    ///   - symbols: includes one end of block among its frequencies.
    ///   - content: what the symbols stand for; nil if it is there no more.
    static func write(
        _ symbols: DeflateSymbols,
        content: ArraySlice<UInt8>?,
        isLast: Bool,
        with writer: inout BitWriter,
        to output: inout [UInt8]
    ) {
        let literalCount = DeflateSymbols.literalCount
        let literals = HuffmanCode(frequencies: symbols.frequencies[..<literalCount], limit: 15)
        let distances = HuffmanCode(frequencies: symbols.frequencies[literalCount...], limit: 15)
        let header = CodesHeader(literals, distances)
        let dynamicBits = header.bits + cost(symbols, literals, distances)
        let fixedBits = cost(symbols, fixedLiterals, fixedDistances)
        if let content, stored(content.count) <= min(dynamicBits, fixedBits) + 3 {
            writeStored(content, isLast: isLast, with: &writer, to: &output)
        } else if fixedBits <= dynamicBits {
            writer.write((isLast ? 1 : 0) | 1 << 1, 3, to: &output)
            writeSymbols(symbols, fixedLiterals, fixedDistances, bits: fixedBits, with: &writer, to: &output)
        } else {
            writer.write((isLast ? 1 : 0) | 2 << 1, 3, to: &output)
            header.write(with: &writer, to: &output)
            writeSymbols(symbols, literals, distances, bits: dynamicBits - header.bits, with: &writer, to: &output)
        }
    }

    /// The bits of all symbols under a code.
    private static func cost(_ symbols: DeflateSymbols, _ literals: HuffmanCode, _ distances: HuffmanCode) -> Int {
        var bits = symbols.extraBits
        for index in 0..<DeflateSymbols.literalCount {
            bits += Int(symbols.frequencies[index]) * Int(literals.lengths[index])
        }
        for index in 0..<DeflateSymbols.distanceCount {
            bits += Int(symbols.frequencies[DeflateSymbols.literalCount + index]) * Int(distances.lengths[index])
        }
        return bits
    }

    // MARK: Stored

    private static let storedMaximum = 65_535

    /// The most bits of stored blocks for so many bytes.
    private static func stored(_ count: Int) -> Int {
        count * 8 + max(1, (count + storedMaximum - 1) / storedMaximum) * (3 + 7 + 32)
    }

    private static func writeStored(
        _ content: ArraySlice<UInt8>,
        isLast: Bool,
        with writer: inout BitWriter,
        to output: inout [UInt8]
    ) {
        var rest = content
        repeat {
            let part = rest.prefix(storedMaximum)
            rest = rest.dropFirst(part.count)
            writer.write(isLast && rest.isEmpty ? 1 : 0, 3, to: &output)
            writer.align(to: &output)
            writer.write(UInt64(part.count) | UInt64(~UInt16(part.count)) << 16, 32, to: &output)
            output += part
        } while !rest.isEmpty
    }

    // MARK: Compressed

    private static func writeSymbols(
        _ symbols: DeflateSymbols,
        _ literals: HuffmanCode,
        _ distances: HuffmanCode,
        bits total: Int,
        with writer: inout BitWriter,
        to output: inout [UInt8]
    ) {
        // Each element has the length above 16 bits of code.
        let codes = zip(literals.codes, literals.lengths).map { UInt32($0) | UInt32($1) << 16 }
        let far = zip(distances.codes, distances.lengths).map { UInt32($0) | UInt32($1) << 16 }
        let end = codes[DeflateSymbols.endOfBlock]
        precondition(
            codes.count >= DeflateSymbols.literalCount && far.count == DeflateSymbols.distanceCount,
            "All codes."
        )
        unsafe writer.writeMany(total, to: &output) { bits, bitCount, memory in
            unsafe codes.withUnsafeBufferPointer { codes in
                unsafe far.withUnsafeBufferPointer { far in
                    unsafe symbols.symbols.withUnsafeBufferPointer { all in
                        var (pending, count, place) = (bits, bitCount, 0)
                        for index in 0..<symbols.count {
                            let symbol = unsafe all[index]
                            let value = Int(symbol &>> 16)
                            let distance = Int(symbol & 0xFFFF)
                            if distance == 0 {
                                let code = unsafe codes[value]
                                pending |= UInt64(code & 0xFFFF) &<< UInt64(truncatingIfNeeded: count)
                                count &+= Int(code &>> 16)
                            } else {
                                // At most 48 bits, and at most 7 that wait.
                                let (lengthCode, lengthExtra) = DeflateSymbols.lengthCode(value)
                                let code = unsafe codes[lengthCode]
                                pending |= UInt64(code & 0xFFFF) &<< UInt64(truncatingIfNeeded: count)
                                count &+= Int(code &>> 16)
                                let low = UInt64(truncatingIfNeeded: (value &- 3) & (1 &<< lengthExtra &- 1))
                                pending |= low &<< UInt64(truncatingIfNeeded: count)
                                count &+= lengthExtra
                                let (distanceCode, distanceExtra) = DeflateSymbols.distanceCode(distance)
                                let second = unsafe far[distanceCode]
                                pending |= UInt64(second & 0xFFFF) &<< UInt64(truncatingIfNeeded: count)
                                count &+= Int(second &>> 16)
                                let rest = UInt64(truncatingIfNeeded: (distance &- 1) & (1 &<< distanceExtra &- 1))
                                pending |= rest &<< UInt64(truncatingIfNeeded: count)
                                count &+= distanceExtra
                            }
                            unsafe memory.storeBytes(of: pending.littleEndian, toByteOffset: place, as: UInt64.self)
                            place &+= count &>> 3
                            pending &>>= UInt64(truncatingIfNeeded: count & ~7)
                            count &= 7
                        }
                        pending |= UInt64(end & 0xFFFF) &<< UInt64(truncatingIfNeeded: count)
                        count &+= Int(end &>> 16)
                        unsafe memory.storeBytes(of: pending.littleEndian, toByteOffset: place, as: UInt64.self)
                        pending &>>= UInt64(truncatingIfNeeded: count & ~7)
                        (bits, bitCount) = (pending, count & 7)
                    }
                }
            }
        }
    }

    // MARK: Codes

    /// The description of the codes of a block (RFC 1951 §3.2.7).
    private struct CodesHeader {
        private var literalCount = 0
        private var distanceCount = 0
        private var orderCount = 19
        /// Symbols of code lengths, with their extra bits above 8 bits.
        private var items: [UInt16] = []
        private let code: HuffmanCode
        private(set) var bits = 14

        init(_ literals: HuffmanCode, _ distances: HuffmanCode) {
            literalCount = max(257, (literals.lengths.lastIndex { $0 > 0 } ?? 0) + 1)
            distanceCount = max(1, (distances.lengths.lastIndex { $0 > 0 } ?? 0) + 1)
            let lengths = literals.lengths[..<literalCount] + distances.lengths[..<distanceCount]
            var index = lengths.startIndex
            while index < lengths.endIndex {
                let length = lengths[index]
                var run = 1
                while index + run < lengths.endIndex, lengths[index + run] == length { run += 1 }
                index += run
                Self.append(length, run, to: &items)
            }
            var frequencies = [UInt32](repeating: 0, count: 19)
            for item in items { frequencies[Int(item & 255)] += 1 }
            code = HuffmanCode(frequencies: frequencies, limit: 7)
            while orderCount > 4, code.lengths[codeOrder[orderCount - 1]] == 0 { orderCount -= 1 }
            bits += orderCount * 3
            for item in items { bits += Int(code.lengths[Int(item & 255)]) + Self.extraBits(item) }
        }

        private static func append(_ length: UInt8, _ count: Int, to items: inout [UInt16]) {
            var left = count
            if length == 0 {
                while left >= 11 {
                    let run = min(left, 138)
                    items.append(18 | UInt16(run - 11) << 8)
                    left -= run
                }
                if left >= 3 {
                    items.append(17 | UInt16(left - 3) << 8)
                    left = 0
                }
            } else {
                items.append(UInt16(length))
                left -= 1
                while left >= 3 {
                    let run = min(left, 6)
                    items.append(16 | UInt16(run - 3) << 8)
                    left -= run
                }
            }
            for _ in 0..<left { items.append(UInt16(length)) }
        }

        private static func extraBits(_ item: UInt16) -> Int {
            switch item & 255 {
            case 16: 2
            case 17: 3
            case 18: 7
            default: 0
            }
        }

        func write(with writer: inout BitWriter, to output: inout [UInt8]) {
            let counts = UInt64(literalCount - 257) | UInt64(distanceCount - 1) << 5 | UInt64(orderCount - 4) << 10
            writer.write(counts, 14, to: &output)
            for symbol in codeOrder[..<orderCount] { writer.write(UInt64(code.lengths[symbol]), 3, to: &output) }
            for item in items {
                let symbol = Int(item & 255)
                writer.write(UInt64(code.codes[symbol]), Int(code.lengths[symbol]), to: &output)
                writer.write(UInt64(item >> 8), Self.extraBits(item), to: &output)
            }
        }
    }
}
