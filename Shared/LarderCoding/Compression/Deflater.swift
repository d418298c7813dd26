/// Compresses with DEFLATE (RFC 1951), plain or framed as zlib (RFC 1950) or gzip (RFC 1952), in steps of any size.
///
/// The output depends on the input, level and `expected` alone, never on how the input is divided. Holds at most 450 KiB, whatever the
/// size of the stream. A value without a lock.
package struct Deflater: Sendable {
    /// The balance of speed and size.
    package enum Level: Sendable, Hashable {
        /// Short chains of candidates and the first match: about as small as zlib's level 1.
        case fast
        /// Longer chains, and a match waits for a longer one at the next byte: about as small as zlib's level 6.
        case good
    }

    /// The bytes after the position that a decision may look at: the longest match and the bytes of a hash behind it.
    static let lookahead = 258 + 14
    /// The bytes after the input that may be read, and are ignored.
    private static let slack = 16

    let level: Level
    private let format: CompressionFormat
    /// The number of bytes a match may reach back, a power of two.
    let windowLength: Int
    let hashBits: Int

    /// History, the present block and input that waits.
    var buffer: [UInt8]
    var count = 0
    var position = 0
    private var blockStart = 0
    /// The position of `buffer`'s beginning in the stream, modulo 2³², plus `windowLength`, so that no position is 0.
    var base: UInt32
    /// The last position of each hash of four bytes, then of three bytes, then the position before each position.
    var tables: [UInt32]
    var symbols = DeflateSymbols()
    /// The match at the byte before the position, while it waits for a longer one.
    var pending = Pending()

    private var writer = BitWriter()
    private var adler = Adler32()
    private var crc = CRC32()
    private var inputLength: UInt32 = 0
    private var hasBegun = false

    /// - Parameter expected: the number of bytes to compress, if it is known; a small number saves memory. More are possible.
    package init(_ format: CompressionFormat, _ level: Level = .good, expected: Int = .max) {
        self.format = format
        self.level = level
        var bits = 10
        while bits < 15, 1 << bits < expected { bits += 1 }
        windowLength = 1 << bits
        hashBits = bits
        base = UInt32(windowLength)
        buffer = [UInt8](repeating: 0, count: 4 * windowLength + Self.slack)
        tables = [UInt32](repeating: 0, count: 3 * windowLength)
    }

    /// Compresses the next bytes. Appends to `output` what is complete.
    package mutating func write(_ bytes: Span<UInt8>, to output: inout [UInt8]) {
        begin(&output)
        var start = 0
        while start < bytes.count {
            let part = min(bytes.count - start, buffer.count - Self.slack - count)
            unsafe bytes.withUnsafeBytes { source in
                unsafe buffer.withUnsafeMutableBytes { target in
                    unsafe target.baseAddress.unsafelyUnwrapped.advanced(by: count)
                        .copyMemory(from: source.baseAddress.unsafelyUnwrapped.advanced(by: start), byteCount: part)
                }
            }
            sum(count..<(count + part))
            count += part
            start += part
            compress(upTo: count - Self.lookahead, &output)
            if count == buffer.count - Self.slack { slide() }
        }
    }

    /// Compresses what is left and ends the stream. Nothing may be written after that.
    package mutating func finish(to output: inout [UInt8]) {
        begin(&output)
        compress(upTo: count, &output)
        if pending.hasByte {
            add(literal: buffer[position - 1])
            pending = Pending()
        }
        writeBlock(isLast: true, &output)
        writer.align(to: &output)
        switch format {
        case .deflate: break
        case .zlib: writer.write(UInt64(adler.value.byteSwapped), 32, to: &output)
        case .gzip:
            writer.write(UInt64(crc.value), 32, to: &output)
            writer.write(UInt64(inputLength), 32, to: &output)
        }
    }

    // MARK: Framing

    private mutating func begin(_ output: inout [UInt8]) {
        guard !hasBegun else { return }
        hasBegun = true
        switch format {
        case .deflate: break
        case .zlib: output += level == .fast ? [0x78, 0x01] : [0x78, 0x9C]
        // No time, and an unknown system: equal input gives equal output everywhere.
        case .gzip: output += [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, level == .fast ? 4 : 0, 0xFF]
        }
    }

    private mutating func sum(_ range: Range<Int>) {
        switch format {
        case .deflate: break
        case .zlib: adler.add(buffer, range)
        case .gzip:
            crc.add(buffer, range)
            inputLength &+= UInt32(truncatingIfNeeded: range.count)
        }
    }

    // MARK: Blocks

    private mutating func compress(upTo limit: Int, _ output: inout [UInt8]) {
        while position < limit {
            findMatches(upTo: limit)
            // A block may end one byte early: a step adds at most two symbols.
            if symbols.count >= DeflateSymbols.countMaximum - 1 { writeBlock(isLast: false, &output) }
        }
    }

    private mutating func add(literal: UInt8) {
        symbols.symbols[symbols.count] = UInt32(literal) << 16
        symbols.count += 1
        symbols.frequencies[Int(literal)] += 1
    }

    private mutating func writeBlock(isLast: Bool, _ output: inout [UInt8]) {
        let end = pending.hasByte ? position - 1 : position
        symbols.frequencies[DeflateSymbols.endOfBlock] += 1
        let content = blockStart >= 0 ? buffer[blockStart..<end] : nil
        DeflateBlock.write(symbols, content: content, isLast: isLast, with: &writer, to: &output)
        symbols.removeAll()
        blockStart = end
    }

    /// Drops the bytes that no match can reach, so that half of the buffer or more is free.
    private mutating func slide() {
        var start = position - windowLength
        // The block is kept too while it may become a stored one: incompressible blocks are short.
        if blockStart >= 0, position - blockStart <= 2 * windowLength { start = min(start, blockStart) }
        unsafe buffer.withUnsafeMutableBytes { buffer in
            let base = unsafe buffer.baseAddress.unsafelyUnwrapped
            unsafe base.copyMemory(from: base.advanced(by: start), byteCount: count - start)
        }
        count -= start
        position -= start
        blockStart = blockStart < start ? -1 : blockStart - start
        base &+= UInt32(truncatingIfNeeded: start)
    }
}
