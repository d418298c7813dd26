import LarderHTTP

/// Reads a chunked body (RFC 9112 §7.1) from bytes in any pieces. Extensions and trailers are bounded and discarded.
package struct ChunkedDecoder: Sendable {
    package struct Limits: Sendable, Hashable {
        package var bodyBytesMaximum = Int.max
        package var sizeDigitsMaximum: Int
        /// The maximum size of extensions, in bytes: of each chunk if `isLenient`, otherwise of all chunks and trailers together.
        package var extensionBytesMaximum: Int
        package var trailerBytesMaximum: Int
        /// Accepts what servers in use send: a space after a chunk's size, and trailer lines of any form.
        package var isLenient: Bool

        /// The limits of a server, which rejects whatever an intermediary could read in another way.
        package static func request(bodyBytesMaximum: Int) -> Limits {
            Limits(
                bodyBytesMaximum: bodyBytesMaximum,
                sizeDigitsMaximum: 8,
                extensionBytesMaximum: 8_192,
                trailerBytesMaximum: 8_192,
                isLenient: false
            )
        }

        /// The limits of a client. A size of 15 digits fits into `Int`.
        package static let response = Limits(
            sizeDigitsMaximum: 15,
            extensionBytesMaximum: 4_096,
            trailerBytesMaximum: 16_384,
            isLenient: true
        )
    }

    private enum State: Sendable {
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

    private let limits: Limits
    private var state = State.size
    private var size = 0
    private var digits = 0
    private var overhead = 0

    package init(_ limits: Limits) { self.limits = limits }

    package var isDone: Bool { if case .done = state { true } else { false } }

    /// Consumes bytes from `start` and returns where it stopped: at their end, or after the body's.
    package mutating func decode(_ bytes: Span<UInt8>, from start: Int, into body: inout [UInt8]) throws(Rejection)
        -> Int
    {
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

    private mutating func step(_ byte: UInt8, _ bodyCount: Int) throws(Rejection) {
        switch state {
        case .size:
            if let digit = hexValue(byte) {
                digits += 1
                guard digits <= limits.sizeDigitsMaximum else {
                    throw Rejection(.badRequest, "A chunk's size has more than \(limits.sizeDigitsMaximum) digits.")
                }
                size = size << 4 | Int(digit)
                return
            }
            guard digits > 0 else { throw Rejection(.badRequest, "A chunk begins without its size.") }
            guard size <= limits.bodyBytesMaximum - bodyCount else {
                throw Rejection(.contentTooLarge, "The body has more than \(limits.bodyBytesMaximum) bytes.")
            }
            switch byte {
            case 0x0D: state = .sizeLF
            case UInt8(ascii: ";"): state = .extensions
            case 0x20 where limits.isLenient, 0x09 where limits.isLenient: state = .extensions
            default: throw Rejection(.badRequest, "A chunk's size is not followed by a line end.")
            }
        case .extensions:
            try countOverhead(limits.extensionBytesMaximum)
            if byte == 0x0D {
                state = .sizeLF
            } else if Self.isControl(byte) {
                throw Rejection(.badRequest, "A bare LF or another control character in a chunk's extension.")
            }
        case .sizeLF:
            try expectLF(byte)
            state = size == 0 ? .trailerStart : .data
            digits = 0
            if limits.isLenient { overhead = 0 }
        case .dataCR:
            guard byte == 0x0D else { throw Rejection(.badRequest, "A chunk is longer than its size.") }
            state = .dataLF
        case .dataLF:
            try expectLF(byte)
            state = .size
        case .trailerStart:
            if byte == 0x0D {
                state = .endLF
            } else {
                try countOverhead(limits.trailerBytesMaximum)
                guard !limits.isLenient else {
                    state = .trailer
                    return try expectText(byte)
                }
                guard isTokenByte(byte) else {
                    throw Rejection(.badRequest, "A trailer does not begin with a name.")
                }
                state = .trailerName
            }
        case .trailerName:
            try countOverhead(limits.trailerBytesMaximum)
            if byte == UInt8(ascii: ":") {
                state = .trailer
            } else if !isTokenByte(byte) {
                throw Rejection(.badRequest, "A trailer is not a name, a colon and a value.")
            }
        case .trailer:
            try countOverhead(limits.trailerBytesMaximum)
            if byte == 0x0D { state = .trailerLF } else { try expectText(byte) }
        case .trailerLF:
            try expectLF(byte)
            state = .trailerStart
        case .endLF:
            try expectLF(byte)
            state = .done
        case .data, .done: preconditionFailure("decode() consumes data itself and stops at the end.")
        }
    }

    private mutating func countOverhead(_ maximum: Int) throws(Rejection) {
        overhead += 1
        guard overhead <= maximum else {
            throw Rejection(
                .requestHeaderFieldsTooLarge,
                "Chunk extensions and trailers have more than \(maximum) bytes."
            )
        }
    }

    private func expectLF(_ byte: UInt8) throws(Rejection) {
        guard byte == 0x0A else { throw Rejection(.badRequest, "A bare CR in a chunk.") }
    }

    private func expectText(_ byte: UInt8) throws(Rejection) {
        guard !Self.isControl(byte) else {
            throw Rejection(.badRequest, "A bare LF or another control character in a trailer.")
        }
    }

    private static func isControl(_ byte: UInt8) -> Bool { (byte < 0x20 && byte != 0x09) || byte == 0x7F }
}
