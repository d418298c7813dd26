import LarderCoding

/// Encodes frames (RFC 6455 §5.2).
package enum WebSocketEncoder {
    package enum Opcode: UInt8, Sendable {
        case continuation = 0
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9
        case pong = 10
    }

    /// Appends a frame.
    ///
    /// - Parameter mask: the client's random mask; nil for a server's frames.
    package static func append(
        _ opcode: Opcode,
        _ payload: [UInt8],
        mask: UInt32? = nil,
        isFinal: Bool = true,
        to bytes: inout [UInt8]
    ) {
        bytes.reserveCapacity(bytes.count + payload.count + 14)
        bytes.append((isFinal ? 0x80 : 0) | opcode.rawValue)
        let flag: UInt8 = mask == nil ? 0 : 0x80
        switch payload.count {
        case 0...125: bytes.append(flag | UInt8(payload.count))
        case 126...0xFFFF:
            bytes.append(flag | 126)
            bytes.append(UInt8(payload.count >> 8))
            bytes.append(UInt8(payload.count & 0xFF))
        default:
            bytes.append(flag | 127)
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: payload.count >> shift))
            }
        }
        guard let mask else { return bytes.append(contentsOf: payload) }
        for shift in stride(from: UInt32(0), to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: mask >> shift)) }
        let start = bytes.count
        bytes.append(contentsOf: payload)
        WebSocketParser.unmask(&bytes, from: start, mask, phase: 0)
    }

    /// A frame of a server.
    package static func frame(_ opcode: Opcode, _ payload: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        append(opcode, payload, to: &bytes)
        return bytes
    }

    /// The payload of a close frame. A reason that is too long is cut at a character boundary.
    package static func closePayload(_ code: WebSocketCloseCode?, _ reason: String) -> [UInt8] {
        guard let code, code.isAllowedOnTheWire else { return [] }
        var cut = reason
        while cut.utf8.count > 123 { cut.removeLast() }
        return [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)] + Array(cut.utf8)
    }
}
