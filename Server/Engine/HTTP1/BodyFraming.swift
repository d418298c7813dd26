import LarderHTTP

/// How long the body of a request is (RFC 9112 §6), once everything that could mean two things has been refused.
enum BodyFraming: Equatable {
    case none
    case length(Int)
    case chunked

    init(_ fields: RequestFields, minorVersion: Int, bodyBytesMaximum: Int) throws(Refusal) {
        let lengths = fields.count(of: .contentLength)
        guard fields.range(of: "transfer-encoding") == nil else {
            guard minorVersion == 1 else {
                throw Refusal(.malformed, "HTTP/1.0 knows no Transfer-Encoding.")
            }
            guard lengths == 0 else {
                throw Refusal(.malformed, "Content-Length and Transfer-Encoding contradict each other.")
            }
            guard fields.combined(.transferEncoding)?.lowercased() == "chunked" else {
                throw Refusal(.unsupportedTransferCoding, "The only transfer coding understood is chunked.")
            }
            self = .chunked
            return
        }
        guard lengths <= 1 else { throw Refusal(.malformed, "There is more than one Content-Length.") }
        guard lengths == 1, let value = fields[.contentLength] else {
            self = .none
            return
        }
        guard (1...18).contains(value.utf8.count), value.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }),
            let length = Int(value)
        else { throw Refusal(.malformed, "Content-Length is not a number.") }
        guard length <= bodyBytesMaximum else {
            throw Refusal(.bodyTooLarge, "The body has \(length) bytes; \(bodyBytesMaximum) are accepted.")
        }
        self = length == 0 ? .none : .length(length)
    }
}

/// Reads a chunked body (RFC 9112 §7.1) from bytes in any pieces. Extensions and trailers are read, bounded and dropped.
struct ChunkedDecoder {
    private enum State {
        case size
        case extensions
        case sizeLF
        case data
        case dataCR
        case dataLF
        case trailerStart
        case trailerName
        case trailer
        case trailerLF
        case endLF
        case done
    }

    private let bodyBytesMaximum: Int
    private var state = State.size
    private var size = 0
    private var digits = 0
    private var overhead = 0

    /// What extensions and trailers may take, together.
    static let overheadMaximum = 8_192

    init(bodyBytesMaximum: Int) { self.bodyBytesMaximum = bodyBytesMaximum }

    var isDone: Bool { if case .done = state { true } else { false } }

    /// Takes bytes from `start` on and returns where it stopped: at their end, or behind the body's.
    mutating func decode(_ bytes: Span<UInt8>, from start: Int, into body: inout [UInt8]) throws(Refusal) -> Int {
        var index = start
        while index < bytes.count, !isDone {
            if case .data = state {
                let count = min(size, bytes.count - index)
                unsafe bytes.extracting(index..<(index + count)).withUnsafeBufferPointer {
                    unsafe body.append(contentsOf: $0)
                }
                index += count
                size -= count
                if size == 0 { state = .dataCR }
                continue
            }
            try step(bytes[index], body.count)
            index += 1
        }
        return index
    }

    private mutating func step(_ byte: UInt8, _ bodyCount: Int) throws(Refusal) {
        switch state {
        case .size:
            if let digit = Self.hexValue(byte) {
                digits += 1
                guard digits <= 8 else { throw Refusal(.malformed, "A chunk's size has more than 8 digits.") }
                size = size << 4 | Int(digit)
                return
            }
            guard digits > 0 else { throw Refusal(.malformed, "A chunk begins without its size.") }
            guard bodyCount + size <= bodyBytesMaximum else {
                throw Refusal(.bodyTooLarge, "The body has more than \(bodyBytesMaximum) bytes.")
            }
            switch byte {
            case 0x0D: state = .sizeLF
            case UInt8(ascii: ";"): state = .extensions
            default: throw Refusal(.malformed, "A chunk's size is followed by something else than its line's end.")
            }
        case .extensions:
            try countOverhead()
            if byte == 0x0D {
                state = .sizeLF
            } else if Self.isControl(byte) {
                throw Refusal(.malformed, "A bare LF or another control character in a chunk's extension.")
            }
        case .sizeLF:
            try expectLF(byte)
            state = size == 0 ? .trailerStart : .data
            digits = 0
        case .dataCR:
            guard byte == 0x0D else { throw Refusal(.malformed, "A chunk is longer than its size.") }
            state = .dataLF
        case .dataLF:
            try expectLF(byte)
            state = .size
        case .trailerStart:
            if byte == 0x0D {
                state = .endLF
            } else {
                try countOverhead()
                guard isTokenByte(byte) else { throw Refusal(.malformed, "A trailer does not begin with a name.") }
                state = .trailerName
            }
        case .trailerName:
            try countOverhead()
            if byte == UInt8(ascii: ":") {
                state = .trailer
            } else if !isTokenByte(byte) {
                throw Refusal(.malformed, "A trailer is not a name, a colon and a value.")
            }
        case .trailer:
            try countOverhead()
            if byte == 0x0D {
                state = .trailerLF
            } else if Self.isControl(byte) {
                throw Refusal(.malformed, "A bare LF or another control character in a trailer.")
            }
        case .trailerLF:
            try expectLF(byte)
            state = .trailerStart
        case .endLF:
            try expectLF(byte)
            state = .done
        case .data, .done: preconditionFailure("decode() handles data itself and stops when done.")
        }
    }

    private mutating func countOverhead() throws(Refusal) {
        overhead += 1
        guard overhead <= Self.overheadMaximum else {
            throw Refusal(.headTooLarge, "Chunk extensions and trailers have more than \(Self.overheadMaximum) bytes.")
        }
    }

    private func expectLF(_ byte: UInt8) throws(Refusal) {
        guard byte == 0x0A else { throw Refusal(.malformed, "A bare CR in a chunk.") }
    }

    private static func isControl(_ byte: UInt8) -> Bool { (byte < 0x20 && byte != 0x09) || byte == 0x7F }

    private static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
