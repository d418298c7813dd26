extension Inflater {
    /// The next part of a gzip header (RFC 1952 §2.3).
    enum GzipPart: Sendable, Hashable {
        case head
        case flags
        case times
        case extraLength
        case extra(Int)
        case name
        case comment
        case checksum
    }

    /// The flags of the present gzip header.
    private enum GzipFlag {
        static let checksum = 2
        static let extra = 4
        static let name = 8
        static let comment = 16
        static let reserved = 0xE0
    }

    mutating func readZlibHead(_ input: Span<UInt8>) throws(InflateError) -> Bool {
        guard let head = take(16, input) else { return false }
        let (method, flags) = (head & 255, head >> 8)
        guard method & 15 == 8, method >> 4 <= 7, (method << 8 | flags) % 31 == 0 else {
            throw .damaged("The compressed data does not begin as zlib's does.")
        }
        guard flags & 0x20 == 0 else { throw .damaged("The compressed data needs a preset dictionary.") }
        state = .blockHead
        return true
    }

    mutating func readGzip(_ part: GzipPart, _ input: Span<UInt8>) throws(InflateError) -> Bool {
        switch part {
        case .head:
            guard let head = take(24, input) else { return false }
            guard head == 0x08_8B1F else { throw .damaged("The compressed data does not begin as gzip's does.") }
            state = .gzip(.flags)
        case .flags:
            guard let flags = take(8, input) else { return false }
            guard flags & GzipFlag.reserved == 0 else { throw .damaged("The gzip header has reserved flags.") }
            gzipFlags = flags
            state = .gzip(.times)
        case .times:
            guard take(48, input) != nil else { return false }
            state = gzipFlags & GzipFlag.extra != 0 ? .gzip(.extraLength) : .gzip(.name)
        case .extraLength:
            guard let length = take(16, input) else { return false }
            state = .gzip(.extra(length))
        case .extra(let count):
            guard count > 0 else {
                state = .gzip(.name)
                return true
            }
            guard take(8, input) != nil else { return false }
            state = .gzip(.extra(count - 1))
        case .name:
            guard try skipText(GzipFlag.name, input) else { return false }
            state = .gzip(.comment)
        case .comment:
            guard try skipText(GzipFlag.comment, input) else { return false }
            state = .gzip(.checksum)
        case .checksum:
            // A decompressor may ignore the header's own CRC (RFC 1952 §2.3.1.2).
            if gzipFlags & GzipFlag.checksum != 0 { guard take(16, input) != nil else { return false } }
            state = .blockHead
        }
        return true
    }

    /// Skips a text that ends with a zero, if the flags have it.
    private mutating func skipText(_ flag: Int, _ input: Span<UInt8>) throws(InflateError) -> Bool {
        guard gzipFlags & flag != 0 else { return true }
        while let byte = take(8, input) { if byte == 0 { return true } }
        return false
    }

    /// Compares the checksum, and for gzip the length, with those of the output.
    mutating func readTrailer(_ input: Span<UInt8>) throws(InflateError) -> Bool {
        if format == .gzip {
            guard let sum = take(32, input) else { return false }
            guard UInt32(truncatingIfNeeded: sum) == crc.value else { throw Self.wrongChecksum }
            state = .memberLength
        } else {
            guard let sum = take(32, input) else { return false }
            guard UInt32(truncatingIfNeeded: sum).byteSwapped == adler.value else { throw Self.wrongChecksum }
            state = .ended
        }
        return true
    }

    /// Compares the last part of a gzip trailer.
    mutating func readMemberLength(_ input: Span<UInt8>) throws(InflateError) -> Bool {
        guard let length = take(32, input) else { return false }
        guard UInt32(truncatingIfNeeded: length) == memberLength else {
            throw .damaged("The length \(length) at the end of the gzip data differs from that of its content.")
        }
        state = .ended
        return true
    }

    /// Begins a further gzip member, if there are bytes after the last one (RFC 1952 §2.2).
    mutating func beginMember(_ input: Span<UInt8>) -> Bool {
        guard format == .gzip else { return false }
        gather(input)
        guard bitCount > 0 else { return false }
        crc = CRC32()
        memberLength = 0
        isLastBlock = false
        state = .gzip(.head)
        return true
    }

    private static var wrongChecksum: InflateError { .damaged("The checksum of the decompressed data is wrong.") }
}
