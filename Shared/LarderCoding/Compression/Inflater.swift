/// Decompresses DEFLATE (RFC 1951), plain or framed as zlib (RFC 1950) or gzip (RFC 1952), in steps of any size.
///
/// Holds the last 32 KiB and up to 64 KiB of unread output, whatever the size of the stream. Output is produced when it is read:
/// a reader that stops after a number of bytes is safe from endless streams. A value without a lock.
package struct Inflater: Sendable {
    /// Bounds of the output, for streams of unknown origin.
    package struct Limits: Sendable, Hashable {
        /// The most bytes that may be read.
        package var outputBytesMaximum: Int
        /// The most output for each byte of input, judged beyond `ratioFreeBytes` of output. DEFLATE itself stays under 1,033.
        package var ratioMaximum: Int

        /// The output up to which every ratio is accepted.
        package static let ratioFreeBytes = 1 << 20

        package init(outputBytesMaximum: Int = .max, ratioMaximum: Int = 2_000) {
            self.outputBytesMaximum = outputBytesMaximum
            self.ratioMaximum = ratioMaximum
        }
    }

    /// The next part of the stream.
    enum State: Sendable {
        case zlibHead
        case gzip(GzipPart)
        case blockHead
        case storedHead
        case stored(Int)
        case codesHead
        case codeLengths
        case compressed
        case trailer
        case memberLength
        case ended
    }

    static let historyLength = 32_768
    private static let step = 65_536
    /// The longest match, and the bytes that copying by words may write beyond its end.
    private static let slack = 258 + 24

    let format: CompressionFormat
    let limits: Limits
    var state: State
    var isLastBlock = false

    /// The next unread byte of the input of the present call, and its end.
    var position = 0
    var end = 0
    /// Unused bits read from the input, the next one lowest.
    var bits: UInt64 = 0
    var bitCount = 0

    var window: [UInt8]
    var written = 0
    private var taken = 0
    /// The position in `window` up to which the checksum has been computed.
    private var summed = 0
    private var inputBytes = 0
    private var outputBytes = 0
    var adler = Adler32()
    var crc = CRC32()
    /// The bytes of the present gzip member, modulo 2³².
    var memberLength: UInt32 = 0
    var gzipFlags = 0

    var literals = HuffmanTable(primaryBits: 11, capacity: 2_048 + 288 * 16)
    /// Whether the tables have the fixed codes.
    var hasFixedCodes = false
    var distances = HuffmanTable(primaryBits: 8, capacity: 256 + 32 * 128)
    var codes = CodeLengths()

    /// - Parameter expected: the number of bytes that will be read; a small number saves memory.
    package init(_ format: CompressionFormat, expected: Int = .max, limits: Limits = Limits()) {
        self.format = format
        self.limits = limits
        state =
            switch format {
            case .deflate: .blockHead
            case .zlib: .zlibHead
            case .gzip: .gzip(.head)
            }
        // One byte more than expected, so that there is room to look for the end.
        let capacity = min(Self.historyLength + Self.step, max(0, min(expected, .max - 1)) + 1)
        window = [UInt8](repeating: 0, count: capacity + Self.slack)
    }

    /// Whether the stream ended with a correct checksum and everything was read.
    package var hasEnded: Bool {
        if case .ended = state { return taken == written }
        return false
    }

    /// Whether decompressed bytes wait to be read.
    package var hasUnreadOutput: Bool { taken < written }

    /// The bytes after the end of the stream that were consumed with it: at most 7.
    package var excessBytes: Int { hasEnded ? bitCount >> 3 : 0 }

    /// Reads up to `count` decompressed bytes.
    ///
    /// - Parameters:
    ///   - offset: where the bytes are written in `target`.
    ///   - input: what follows the input of earlier calls.
    ///   - consumed: the bytes of `input` that earlier calls have consumed, and after the call that this one has.
    /// - Returns: the bytes read. Fewer than `count`: all input is consumed, or the stream has ended.
    /// - Throws: `.damaged` or `.tooLarge`; no call may follow.
    package mutating func read(
        _ count: Int,
        into target: inout [UInt8],
        at offset: Int = 0,
        from input: Span<UInt8>,
        consumed: inout Int
    ) throws(InflateError) -> Int {
        precondition(offset >= 0 && count >= 0 && target.count - offset >= count, "There is room for what is read.")
        precondition(consumed >= 0 && consumed <= input.count, "The input has what was consumed of it.")
        var done = 0
        while done < count {
            if taken == written {
                position = consumed
                end = input.count
                defer {
                    inputBytes += position - consumed
                    consumed = position
                }
                try fill(input)
            }
            let part = min(count - done, written - taken)
            guard part > 0 else { break }
            unsafe window.withUnsafeBytes { source in
                unsafe target.withUnsafeMutableBytes { target in
                    unsafe target.baseAddress?.advanced(by: offset + done)
                        .copyMemory(from: source.baseAddress.unsafelyUnwrapped.advanced(by: taken), byteCount: part)
                }
            }
            taken += part
            done += part
        }
        outputBytes += done
        try checkLimits()
        return done
    }

    /// Reads the end of a stream of which all bytes were read, so that its checksum is compared. Further output is ignored.
    ///
    /// - Returns: whether the stream has ended; false: there is more output, or its end needs more input.
    package mutating func readEnd(from input: Span<UInt8>, consumed: inout Int) throws(InflateError) -> Bool {
        if taken == written {
            position = consumed
            end = input.count
            defer { consumed = position }
            try fill(input)
        }
        return hasEnded
    }

    private func checkLimits() throws(InflateError) {
        guard outputBytes <= limits.outputBytesMaximum else {
            throw .tooLarge("\(limits.outputBytesMaximum) bytes")
        }
        if outputBytes > Limits.ratioFreeBytes, outputBytes / limits.ratioMaximum > inputBytes {
            throw .tooLarge("\(limits.ratioMaximum) times the compressed data")
        }
    }

    // MARK: Producing

    /// Decompresses until the window is full, the input is used up or the stream ends.
    private mutating func fill(_ input: Span<UInt8>) throws(InflateError) {
        let limit = window.count - Self.slack
        // Small pieces of input append to the window until it is full; then its history moves to its beginning.
        if written >= limit {
            let kept = min(written, Self.historyLength)
            unsafe window.withUnsafeMutableBytes { window in
                let base = unsafe window.baseAddress.unsafelyUnwrapped
                unsafe base.copyMemory(from: base.advanced(by: written - kept), byteCount: kept)
            }
            written = kept
            taken = kept
            summed = kept
        }
        while written < limit, try advance(input, limit) {}
        sum()
    }

    /// Adds what was written since the last call to the checksum.
    private mutating func sum() {
        switch format {
        case .deflate: break
        case .zlib: adler.add(window, summed..<written)
        case .gzip:
            crc.add(window, summed..<written)
            memberLength &+= UInt32(truncatingIfNeeded: written - summed)
        }
        summed = written
    }

    /// Processes the next part of the stream.
    ///
    /// - Returns: false if nothing more can be done: the part needs more input, or the stream has ended.
    private mutating func advance(_ input: Span<UInt8>, _ limit: Int) throws(InflateError) -> Bool {
        switch state {
        case .zlibHead: return try readZlibHead(input)
        case .gzip(let part): return try readGzip(part, input)
        case .blockHead: return try beginBlock(input)
        case .storedHead: return try beginStored(input)
        case .stored(let count): return copyStored(count, input, limit)
        case .codesHead: return try readCodesHead(input)
        case .codeLengths: return try readCodeLengths(input)
        case .compressed: return try decompress(input, limit)
        case .trailer:
            sum()
            return try readTrailer(input)
        case .memberLength: return try readMemberLength(input)
        case .ended: return beginMember(input)
        }
    }

    private mutating func beginBlock(_ input: Span<UInt8>) throws(InflateError) -> Bool {
        if isLastBlock {
            // The trailer begins at a byte.
            drop(bitCount & 7)
            state = format == .deflate ? .ended : .trailer
            return true
        }
        guard let head = take(3, input) else { return false }
        isLastBlock = head & 1 == 1
        switch head >> 1 {
        case 0:
            drop(bitCount & 7)
            state = .storedHead
        case 1:
            useFixedCodes()
            state = .compressed
        case 2: state = .codesHead
        default: throw .damaged("A compressed block has the invalid type 3.")
        }
        return true
    }

    /// Builds the fixed codes, unless the tables have them: a block of 10 bits must not cost a table.
    private mutating func useFixedCodes() {
        guard !hasFixedCodes else { return }
        _ = literals.build(HuffmanTable.fixedLengths[...], symbols: HuffmanTable.lengthSymbols, .complete)
        let fives = [UInt8](repeating: 5, count: 32)
        _ = distances.build(fives[...], symbols: HuffmanTable.distanceSymbols, .complete)
        hasFixedCodes = true
    }

    private mutating func beginStored(_ input: Span<UInt8>) throws(InflateError) -> Bool {
        guard let lengths = take(32, input) else { return false }
        guard lengths & 0xFFFF == lengths >> 16 ^ 0xFFFF else {
            throw .damaged("A stored block's length \(lengths & 0xFFFF) differs from its complement.")
        }
        state = .stored(lengths & 0xFFFF)
        return true
    }

    private mutating func copyStored(_ count: Int, _ input: Span<UInt8>, _ limit: Int) -> Bool {
        var left = count
        // First the bytes that were read ahead, then the rest at once.
        while left > 0, bitCount > 0, written < limit {
            window[written] = UInt8(truncatingIfNeeded: bits)
            drop(8)
            written += 1
            left -= 1
        }
        let part = min(left, limit - written, end - position)
        if part > 0 {
            unsafe input.withUnsafeBytes { source in
                unsafe window.withUnsafeMutableBytes { window in
                    unsafe window.baseAddress.unsafelyUnwrapped.advanced(by: written)
                        .copyMemory(from: source.baseAddress.unsafelyUnwrapped.advanced(by: position), byteCount: part)
                }
            }
            written += part
            position += part
            left -= part
        }
        state = left == 0 ? .blockHead : .stored(left)
        return left == 0 || position < end
    }

    // MARK: Bits

    /// The next bits as a number; nil if the input ends before them.
    mutating func take(_ count: Int, _ input: Span<UInt8>) -> Int? {
        if bitCount < count { gather(input) }
        guard bitCount >= count else { return nil }
        let value = Int(bits & (UInt64(1) << UInt64(count) - 1))
        drop(count)
        return value
    }

    mutating func drop(_ count: Int) {
        bits >>= UInt64(count)
        bitCount -= count
    }

    /// Reads bytes until there are 56 bits or more, or no bytes.
    mutating func gather(_ input: Span<UInt8>) {
        while bitCount < 56, position < end {
            bits |= UInt64(input[position]) << UInt64(bitCount)
            position += 1
            bitCount += 8
        }
    }
}
