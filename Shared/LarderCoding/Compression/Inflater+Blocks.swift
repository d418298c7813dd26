extension Inflater {
    /// The code lengths of a block with dynamic codes, while they are read (RFC 1951 §3.2.7).
    struct CodeLengths: Sendable {
        /// The code of the code lengths.
        var table = HuffmanTable(primaryBits: 7, capacity: 128)
        var literalCount = 0
        var distanceCount = 0
        var orderCount = 0
        var order: [UInt8] = []
        var lengths: [UInt8] = []
    }

    private static let codeOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

    private static var badCodes: InflateError { .damaged("The compressed data describes an invalid Huffman code.") }

    private static var badSymbol: InflateError { .damaged("The compressed data has an invalid symbol or distance.") }

    mutating func readCodesHead(_ input: Span<UInt8>) throws(InflateError) -> Bool {
        guard let head = take(14, input) else { return false }
        codes.literalCount = head & 31 + 257
        codes.distanceCount = (head >> 5) & 31 + 1
        codes.orderCount = head >> 10 + 4
        guard codes.literalCount <= 286, codes.distanceCount <= 30 else { throw Self.badCodes }
        codes.order.removeAll(keepingCapacity: true)
        codes.lengths.removeAll(keepingCapacity: true)
        codes.lengths.reserveCapacity(320)
        state = .codeLengths
        return true
    }

    mutating func readCodeLengths(_ input: Span<UInt8>) throws(InflateError) -> Bool {
        while codes.order.count < codes.orderCount {
            guard let length = take(3, input) else { return false }
            codes.order.append(UInt8(length))
            guard codes.order.count == codes.orderCount else { continue }
            var lengths = [UInt8](repeating: 0, count: 19)
            for (index, length) in codes.order.enumerated() { lengths[Self.codeOrder[index]] = length }
            guard codes.table.build(lengths[...], symbols: HuffmanTable.lengthCodeSymbols, .complete) else {
                throw Self.badCodes
            }
        }
        let count = codes.literalCount + codes.distanceCount
        while codes.lengths.count < count {
            gather(input)
            let entry = codes.table.entries[Int(bits & 127)]
            let (symbol, used) = (entry >> 16, Int(entry & 255))
            let extra = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7
            // Missing bits are zeros: an entry is valid only if all its bits are there.
            guard bitCount >= used + extra, used > 0 else {
                if bitCount >= 14 { throw Self.badCodes }
                return false
            }
            let number = Int(bits >> UInt64(used)) & (1 << extra - 1)
            drop(used + extra)
            switch symbol {
            case 16:
                guard let last = codes.lengths.last else { throw Self.badCodes }
                codes.lengths.append(contentsOf: repeatElement(last, count: number + 3))
            case 17: codes.lengths.append(contentsOf: repeatElement(0, count: number + 3))
            case 18: codes.lengths.append(contentsOf: repeatElement(0, count: number + 11))
            default: codes.lengths.append(UInt8(symbol))
            }
        }
        let literalCount = codes.literalCount
        hasFixedCodes = false
        guard codes.lengths.count == count, codes.lengths[256] > 0,
            literals.build(codes.lengths[..<literalCount], symbols: HuffmanTable.lengthSymbols, .singleAllowed),
            distances.build(codes.lengths[literalCount...], symbols: HuffmanTable.distanceSymbols, .singleAllowed)
        else { throw Self.badCodes }
        state = .compressed
        return true
    }

    /// The reason why the fast loop pauses.
    enum Stop {
        case full
        case endOfBlock
        case damaged
    }

    /// Decodes symbols until the window is full, the block ends (true) or the input is used up (false).
    mutating func decompress(_ input: Span<UInt8>, _ limit: Int) throws(InflateError) -> Bool {
        while written < limit {
            if end - position >= 32 {
                switch runFast(input, limit) {
                case .full where written >= limit: return true
                case .full: break
                case .endOfBlock:
                    state = .blockHead
                    return true
                case .damaged: throw Self.badSymbol
                }
            }
            // Near the end of the input every bit is checked before it is used.
            gather(input)
            switch try oneSymbol() {
            case .done: break
            case .endOfBlock:
                state = .blockHead
                return true
            case .needsInput: return false
            }
        }
        return true
    }

    private enum Step {
        case done
        case endOfBlock
        case needsInput
    }

    /// Decodes one literal or match from the available bits, or leaves all of them.
    private mutating func oneSymbol() throws(InflateError) -> Step {
        var reader = SymbolReader(bits: bits, bitCount: bitCount)
        guard let entry = try reader.symbol(literals) else { return .needsInput }
        if entry & HuffmanTable.literal != 0 {
            window[written] = UInt8(truncatingIfNeeded: entry >> 16)
            written += 1
        } else if entry & HuffmanTable.endOfBlock == 0 {
            guard let length = reader.number(entry), let second = try reader.symbol(distances),
                let distance = reader.number(second)
            else { return .needsInput }
            guard length >= 3, distance > 0, distance <= written else { throw Self.badSymbol }
            for index in written..<(written + length) { window[index] = window[index - distance] }
            written += length
        }
        bits = reader.bits
        bitCount = reader.bitCount
        return entry & HuffmanTable.endOfBlock == 0 ? .done : .endOfBlock
    }

    /// Bits that are used only if a whole literal or match is there.
    private struct SymbolReader {
        var bits: UInt64
        var bitCount: Int

        /// The next symbol's entry; nil if it needs more bits.
        mutating func symbol(_ table: HuffmanTable) throws(InflateError) -> UInt32? {
            var used = 0
            var entry = table.entries[Int(bits & (UInt64(1) << UInt64(table.primaryBits) - 1))]
            if entry & HuffmanTable.subtable != 0 {
                used = table.primaryBits
                let mask = UInt64(1) << UInt64((entry >> 8) & 31) - 1
                entry = table.entries[Int(entry >> 16) + Int((bits >> UInt64(used)) & mask)]
            }
            // Missing bits are zeros, and may lead to an entry without a code or with a longer one.
            guard entry & 255 > 0 else {
                if bitCount < 15 { return nil }
                throw Inflater.badSymbol
            }
            used += Int(entry & 255)
            guard used <= bitCount else { return nil }
            bits >>= UInt64(used)
            bitCount -= used
            return entry
        }

        mutating func number(_ entry: UInt32) -> Int? {
            let extra = Int((entry >> 8) & 31)
            guard bitCount >= extra else { return nil }
            let value = Int(entry >> 16) + Int(bits & (UInt64(1) << UInt64(extra) - 1))
            bits >>= UInt64(extra)
            bitCount -= extra
            return value
        }
    }
}
