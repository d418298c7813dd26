/// Takes chunked content apart (RFC 9112 §7.1). Extensions and trailers are read over, and bounded.
struct ReplyChunks: Sendable {
    private enum State: Sendable {
        case size(digits: Int)
        case chunkExtension
        case sizeLF
        case data
        case dataCR
        case dataLF
        case trailerStart
        case trailer
        case trailerLF
        case lastLF
        case over
    }

    private let limits: ReplyReader.Limits
    private var state = State.size(digits: 0)
    private var left = 0
    private var lineBytes = 0
    private var trailerBytes = 0

    init(_ limits: ReplyReader.Limits) { self.limits = limits }

    var isOver: Bool { if case .over = state { true } else { false } }

    /// Reads on, up to the content's end, and gives how far that is.
    mutating func read(
        _ bytes: Span<UInt8>,
        from start: Int,
        into piece: inout [UInt8]
    ) throws(ReplyReader.Failure) -> Int {
        var index = start
        while index < bytes.count {
            if case .data = state {
                let end = index + min(left, bytes.count - index)
                let data = bytes.extracting(index..<end)
                unsafe data.withUnsafeBufferPointer { unsafe piece.append(contentsOf: $0) }
                left -= end - index
                index = end
                if left == 0 { state = .dataCR }
                continue
            }
            try step(bytes[index])
            index += 1
            if case .over = state { break }
        }
        return index
    }

    private mutating func step(_ byte: UInt8) throws(ReplyReader.Failure) {
        switch state {
        case .size(let digits): try size(byte, digits)
        case .chunkExtension:
            if byte == 0x0D { state = .sizeLF } else { try line(byte) }
        case .sizeLF:
            try expectLF(byte)
            lineBytes = 0
            state = left == 0 ? .trailerStart : .data
        case .dataCR:
            guard byte == 0x0D else { throw .malformed("A chunk is longer than its size says.") }
            state = .dataLF
        case .dataLF:
            try expectLF(byte)
            state = .size(digits: 0)
        case .trailerStart:
            if byte == 0x0D {
                state = .lastLF
            } else {
                state = .trailer
                try trailer(byte)
            }
        case .trailer:
            if byte == 0x0D { state = .trailerLF } else { try trailer(byte) }
        case .trailerLF:
            try expectLF(byte)
            state = .trailerStart
        case .lastLF:
            try expectLF(byte)
            state = .over
        case .data, .over: return
        }
    }

    private mutating func size(_ byte: UInt8, _ digits: Int) throws(ReplyReader.Failure) {
        if let digit = Self.value(byte) {
            // Fifteen digits are more bytes than anybody has, and fit.
            guard digits < 15 else { throw .malformed("A chunk's size has more than 15 digits.") }
            left = digits == 0 ? digit : left << 4 | digit
            state = .size(digits: digits + 1)
            return
        }
        guard digits > 0 else { throw .malformed("A chunk does not begin with its size.") }
        switch byte {
        case 0x0D: state = .sizeLF
        case UInt8(ascii: ";"), 0x20, 0x09: state = .chunkExtension
        default: throw .malformed("A chunk's size is no hexadecimal number.")
        }
    }

    private mutating func line(_ byte: UInt8) throws(ReplyReader.Failure) {
        try check(byte)
        lineBytes += 1
        guard lineBytes <= limits.chunkLineBytes else {
            throw .malformed("A chunk's extensions are larger than \(limits.chunkLineBytes) bytes.")
        }
    }

    private mutating func trailer(_ byte: UInt8) throws(ReplyReader.Failure) {
        try check(byte)
        trailerBytes += 1
        guard trailerBytes <= limits.trailerBytes else {
            throw .malformed("The trailers are larger than \(limits.trailerBytes) bytes.")
        }
    }

    private func check(_ byte: UInt8) throws(ReplyReader.Failure) {
        guard byte >= 0x20 || byte == 0x09, byte != 0x7F else {
            throw .malformed("A line of the chunked content has a control character.")
        }
    }

    private func expectLF(_ byte: UInt8) throws(ReplyReader.Failure) {
        guard byte == 0x0A else { throw .malformed("A line of the chunked content has a bare CR.") }
    }

    private static func value(_ byte: UInt8) -> Int? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte - UInt8(ascii: "A")) + 10
        default: nil
        }
    }
}
