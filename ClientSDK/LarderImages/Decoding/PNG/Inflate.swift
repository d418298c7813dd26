/// Decompresses a zlib stream (RFC 1950, RFC 1951) in pieces of one array, a window at a time.
///
/// Holds the last 32 KiB and up to 64 KiB of unread output, whatever the size of the stream: a reader that stops after a number of
/// bytes is safe from endless streams. A value without a lock.
struct Inflate {
    private static let historyLength = 32_768
    private static let step = 65_536
    /// The longest match, and the bytes that copying by words may write beyond its end.
    private static let slack = 258 + 24

    private enum State {
        case blockHead
        case stored(Int)
        case compressed
        case ended
    }

    let bytes: [UInt8]
    private let pieces: [Range<Int>]
    private var piece = 0
    var position: Int
    var end: Int
    /// Unused bits read from the input, the next one lowest.
    var bits: UInt64 = 0
    var bitCount = 0

    private var state = State.blockHead
    private var isLastBlock = false
    var window: [UInt8]
    var written = 0
    private var taken = 0
    private var checksum = Adler32()

    var literals = HuffmanTable(primaryBits: 11, capacity: 2_048 + 288 * 16)
    var distances = HuffmanTable(primaryBits: 8, capacity: 256 + 32 * 128)

    /// - Parameters:
    ///   - pieces: the ranges of the stream in `bytes`, in order.
    ///   - expected: the number of bytes that will be read; a small number saves memory.
    init(_ bytes: [UInt8], _ pieces: [Range<Int>], expected: Int) throws(ImageDecodingError) {
        precondition(pieces.allSatisfy { $0.lowerBound >= 0 && $0.upperBound <= bytes.count }, "Pieces lie within.")
        self.bytes = bytes
        self.pieces = pieces
        position = pieces.first?.lowerBound ?? 0
        end = pieces.first?.upperBound ?? 0
        // One byte more than expected, so that there is room to look for the end.
        let capacity = min(Self.historyLength + Self.step, max(0, expected) + 1)
        window = [UInt8](repeating: 0, count: capacity + Self.slack)
        let method = try take(8)
        let flags = try take(8)
        // A window beyond 32 KiB, a preset dictionary: neither is possible in a PNG (PNG §10.1).
        guard method & 15 == 8, method >> 4 <= 7, (method << 8 | flags) % 31 == 0, flags & 0x20 == 0 else {
            throw ImageDecodingError(.damaged, "The compressed data does not begin as zlib's does.")
        }
    }

    /// Reads the next bytes.
    ///
    /// - Throws: `.damaged` if the stream is invalid or too short, `.truncated` if its pieces end too soon.
    mutating func read(_ count: Int, into target: inout [UInt8], at offset: Int = 0) throws(ImageDecodingError) {
        precondition(offset >= 0 && count >= 0 && target.count - offset >= count, "There is room for what is read.")
        var done = 0
        while done < count {
            if taken == written { try fill() }
            let part = min(count - done, written - taken)
            guard part > 0 else {
                throw ImageDecodingError(.damaged, "The compressed data ends before the picture does.")
            }
            unsafe window.withUnsafeBytes { source in
                unsafe target.withUnsafeMutableBytes { target in
                    unsafe target.baseAddress?.advanced(by: offset + done)
                        .copyMemory(from: source.baseAddress.unsafelyUnwrapped.advanced(by: taken), byteCount: part)
                }
            }
            taken += part
            done += part
        }
    }

    /// Reads to the end and compares the checksum. Additional data is ignored, as by other decoders.
    mutating func finish() throws(ImageDecodingError) {
        if taken == written { try fill() }
        guard taken == written, case .ended = state else { return }
        bits >>= UInt64(bitCount & 7)
        bitCount -= bitCount & 7
        var sum: UInt32 = 0
        for _ in 0..<4 { sum = sum << 8 | UInt32(try take(8)) }
        guard sum == checksum.value else {
            throw ImageDecodingError(.damaged, "The checksum of the decompressed data is wrong.")
        }
    }

    // MARK: Producing

    /// Decompresses until the window is full or the stream ends.
    private mutating func fill() throws(ImageDecodingError) {
        let kept = min(written, Self.historyLength)
        if written > kept {
            unsafe window.withUnsafeMutableBytes { window in
                let base = unsafe window.baseAddress.unsafelyUnwrapped
                unsafe base.copyMemory(from: base.advanced(by: written - kept), byteCount: kept)
            }
        }
        written = kept
        taken = kept
        let limit = window.count - Self.slack
        while written < limit {
            switch state {
            case .blockHead: try beginBlock()
            case .stored(let count): state = try copyStored(count, limit)
            case .compressed: try decompress(limit)
            case .ended:
                checksum.add(window, taken..<written)
                return
            }
        }
        checksum.add(window, taken..<written)
    }

    private mutating func beginBlock() throws(ImageDecodingError) {
        if isLastBlock {
            state = .ended
            return
        }
        isLastBlock = try take(1) == 1
        switch try take(2) {
        case 0:
            bits >>= UInt64(bitCount & 7)
            bitCount -= bitCount & 7
            let length = try take(16)
            guard try take(16) == length ^ 0xFFFF else {
                throw ImageDecodingError(.damaged, "A stored block's length is wrong.")
            }
            state = .stored(length)
        case 1:
            _ = literals.build(HuffmanTable.fixedLengths[...], symbols: HuffmanTable.lengthSymbols, .complete)
            let fives = [UInt8](repeating: 5, count: 32)
            _ = distances.build(fives[...], symbols: HuffmanTable.distanceSymbols, .complete)
            state = .compressed
        case 2:
            try readCodes()
            state = .compressed
        default: throw ImageDecodingError(.damaged, "A compressed block has an invalid type.")
        }
    }

    private mutating func copyStored(_ count: Int, _ limit: Int) throws(ImageDecodingError) -> State {
        var left = count
        // First the bytes that were read ahead, then the rest at once.
        while left > 0, bitCount > 0, written < limit {
            window[written] = UInt8(try take(8))
            written += 1
            left -= 1
        }
        while left > 0, written < limit {
            guard position < end || nextPiece() else { throw Self.truncated }
            let part = min(left, limit - written, end - position)
            unsafe bytes.withUnsafeBytes { source in
                unsafe window.withUnsafeMutableBytes { window in
                    unsafe window.baseAddress.unsafelyUnwrapped.advanced(by: written)
                        .copyMemory(from: source.baseAddress.unsafelyUnwrapped.advanced(by: position), byteCount: part)
                }
            }
            written += part
            position += part
            left -= part
        }
        return left == 0 ? .blockHead : .stored(left)
    }

    /// The codes of a block with dynamic codes (RFC 1951 §3.2.7).
    private mutating func readCodes() throws(ImageDecodingError) {
        let literalCount = try take(5) + 257
        let distanceCount = try take(5) + 1
        let codeCount = try take(4) + 4
        guard literalCount <= 286, distanceCount <= 30 else { throw Self.badCodes }
        var order = [UInt8](repeating: 0, count: 19)
        for index in 0..<codeCount { order[Self.codeOrder[index]] = UInt8(try take(3)) }
        var codes = HuffmanTable(primaryBits: 7, capacity: 128)
        guard codes.build(order[...], symbols: HuffmanTable.lengthCodeSymbols, .complete) else { throw Self.badCodes }
        var lengths: [UInt8] = []
        lengths.reserveCapacity(320)
        while lengths.count < literalCount + distanceCount {
            gather()
            let entry = codes.entries[Int(bits & 127)]
            let used = Int(entry & 255)
            guard used > 0 else { throw Self.badCodes }
            guard used <= bitCount else { throw Self.truncated }
            drop(used)
            switch entry >> 16 {
            case 16:
                guard let last = lengths.last else { throw Self.badCodes }
                let count = try take(2) + 3
                lengths.append(contentsOf: repeatElement(last, count: count))
            case 17:
                let count = try take(3) + 3
                lengths.append(contentsOf: repeatElement(0, count: count))
            case 18:
                let count = try take(7) + 11
                lengths.append(contentsOf: repeatElement(0, count: count))
            case let length: lengths.append(UInt8(length))
            }
        }
        guard lengths.count == literalCount + distanceCount, lengths[256] > 0,
            literals.build(lengths[..<literalCount], symbols: HuffmanTable.lengthSymbols, .singleAllowed),
            distances.build(lengths[literalCount...], symbols: HuffmanTable.distanceSymbols, .singleAllowed)
        else { throw Self.badCodes }
    }

    /// The reason why decoding of symbols pauses.
    enum Stop {
        case full
        case endOfBlock
        case damaged
        case truncated
    }

    /// Decodes symbols until the window is full or the block ends.
    private mutating func decompress(_ limit: Int) throws(ImageDecodingError) {
        while true {
            if end - position >= 32 {
                switch runFast(limit) {
                case .full where written >= limit: return
                case .full: break
                case .endOfBlock:
                    state = .blockHead
                    return
                case .damaged, .truncated: throw Self.damaged
                }
            }
            // Near the end of a piece every byte is checked before it is read.
            gather()
            switch oneSymbol() {
            case nil: if written >= limit { return }
            case .full?: return
            case .endOfBlock?:
                state = .blockHead
                return
            case .damaged?: throw Self.damaged
            case .truncated?: throw Self.truncated
            }
        }
    }

    /// Decodes one symbol from the available bits. Nil: it was a literal or a match.
    private mutating func oneSymbol() -> Stop? {
        guard let entry = symbol(literals) else { return .damaged }
        guard bitCount >= 0 else { return .truncated }
        if entry & HuffmanTable.literal != 0 {
            window[written] = UInt8(entry >> 16)
            written += 1
            return nil
        }
        if entry & HuffmanTable.endOfBlock != 0 { return .endOfBlock }
        guard let length = number(entry) else { return .truncated }
        guard let second = symbol(distances) else { return bitCount < 15 ? .truncated : .damaged }
        guard bitCount >= 0, let distance = number(second) else { return .truncated }
        guard length >= 3, distance > 0, distance <= written else { return .damaged }
        for index in written..<(written + length) { window[index] = window[index - distance] }
        written += length
        return nil
    }

    private mutating func symbol(_ table: HuffmanTable) -> UInt32? {
        var entry = table.entries[Int(bits & (UInt64(1) << UInt64(table.primaryBits) - 1))]
        if entry & HuffmanTable.subtable != 0 {
            drop(table.primaryBits)
            entry = table.entries[Int(entry >> 16) + Int(bits & (UInt64(1) << UInt64((entry >> 8) & 31) - 1))]
        }
        guard entry & 255 > 0 else { return nil }
        drop(Int(entry & 255))
        return entry
    }

    private mutating func number(_ entry: UInt32) -> Int? {
        let extra = Int((entry >> 8) & 31)
        guard bitCount >= extra else { return nil }
        let value = Int(entry >> 16) + Int(bits & (UInt64(1) << UInt64(extra) - 1))
        drop(extra)
        return value
    }

    // MARK: Bits

    /// The next bits as a number.
    private mutating func take(_ count: Int) throws(ImageDecodingError) -> Int {
        gather()
        guard bitCount >= count else { throw Self.truncated }
        let value = Int(bits & (UInt64(1) << UInt64(count) - 1))
        drop(count)
        return value
    }

    /// The count may become negative if bits are missing.
    private mutating func drop(_ count: Int) {
        bits >>= UInt64(count)
        bitCount -= count
    }

    /// Reads bytes until there are 56 bits or more, or no bytes.
    private mutating func gather() {
        while bitCount < 56, position < end || nextPiece() {
            bits |= UInt64(bytes[position]) << UInt64(max(0, bitCount))
            position += 1
            bitCount += 8
        }
    }

    private mutating func nextPiece() -> Bool {
        while piece + 1 < pieces.count {
            piece += 1
            position = pieces[piece].lowerBound
            end = pieces[piece].upperBound
            if position < end { return true }
        }
        return false
    }

    private static let codeOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

    private static var truncated: ImageDecodingError {
        ImageDecodingError(.truncated, "The compressed data ends in the middle.")
    }

    private static var damaged: ImageDecodingError {
        ImageDecodingError(.damaged, "The compressed data has a symbol that cannot be.")
    }

    private static var badCodes: ImageDecodingError {
        ImageDecodingError(.damaged, "The compressed data describes codes that cannot be.")
    }
}
