/// An event from the peer.
package enum WebSocketEvent: Sendable, Hashable {
    case text([UInt8])
    case binary([UInt8])
    case ping([UInt8])
    case pong([UInt8])
    /// The peer closes; the code is nil if it sent none.
    case close(code: WebSocketCloseCode?, reason: String)
    /// The peer violated the protocol: close with this code and read no more.
    case failed(code: WebSocketCloseCode, reason: String)
}

/// The side of a connection. Clients mask their frames, servers do not (RFC 6455 §5.1).
package enum WebSocketRole: Sendable, Hashable {
    case client
    case server
}

/// Decodes frames and assembles messages (RFC 6455 §5) from bytes in any pieces.
///
/// A value without I/O: bytes go in, events come out. After a close or an error nothing more is read.
package struct WebSocketParser: Sendable {
    /// The frame that is being read.
    private struct Frame {
        var isFinal = false
        var opcode: UInt8 = 0
        var mask: UInt32?
        var payloadLeft = 0
        /// The position in the mask, modulo 4.
        var maskPhase = 0
    }

    private let role: WebSocketRole
    private let messageBytesMaximum: Int

    private var head: [UInt8] = []
    private var frame: Frame?
    /// The opcode of the fragmented message being assembled; 0 for none.
    private var messageOpcode: UInt8 = 0
    private var message: [UInt8] = []
    private var control: [UInt8] = []
    private var validator = UTF8Validator()
    private var isFinished = false

    /// - Parameter role: the reading side.
    package init(role: WebSocketRole, messageBytesMaximum: Int = 1 << 20) {
        self.role = role
        self.messageBytesMaximum = messageBytesMaximum
    }

    /// Reads bytes and appends the events that they complete.
    package mutating func receive(_ bytes: Span<UInt8>, _ events: inout [WebSocketEvent]) {
        var index = 0
        while !isFinished {
            if frame == nil {
                guard index < bytes.count else { return }
                head.append(bytes[index])
                index += 1
                if let failure = readHead() { fail(failure.0, failure.1, &events) }
                // A frame without payload is complete with its head.
                guard let frame, frame.payloadLeft == 0 else { continue }
            } else {
                guard index < bytes.count else { return }
                let count = Swift.min(frame?.payloadLeft ?? 0, bytes.count - index)
                takePayload(bytes.extracting(index..<(index + count)), &events)
                index += count
            }
            if !isFinished, let frame, frame.payloadLeft == 0 { endFrame(frame, &events) }
        }
    }

    // MARK: Heads

    /// Processes a complete head; returns the violation, if any.
    private mutating func readHead() -> (WebSocketCloseCode, String)? {
        guard head.count >= 2 else { return head.count == 1 ? checkFirstByte(head[0]) : nil }
        let isMasked = head[1] & 0x80 != 0
        guard isMasked == (role == .server) else {
            return (
                .protocolError,
                role == .server ? "frames from clients must be masked" : "frames from servers must not be masked"
            )
        }
        let short = Int(head[1] & 0x7F)
        let opcode = head[0] & 0x0F
        if opcode >= 8, short > 125 { return (.protocolError, "control frames must have at most 125 bytes") }
        let lengthBytes = short == 126 ? 2 : short == 127 ? 8 : 0
        let needed = 2 + lengthBytes + (isMasked ? 4 : 0)
        guard head.count == needed else { return nil }
        var length = UInt64(short)
        if lengthBytes > 0 {
            length = head[2..<(2 + lengthBytes)].reduce(0) { $0 << 8 | UInt64($1) }
            guard length > (lengthBytes == 2 ? 125 : 0xFFFF), length >> 63 == 0 else {
                return (.protocolError, "lengths must have their shortest form")
            }
        }
        if opcode < 8, UInt64(message.count) + length > UInt64(messageBytesMaximum) {
            return (.messageTooBig, "messages must have at most \(messageBytesMaximum) bytes")
        }
        var frame = Frame(isFinal: head[0] & 0x80 != 0, opcode: opcode, payloadLeft: Int(length))
        if isMasked {
            frame.mask = head[(needed - 4)...].reversed().reduce(0) { $0 << 8 | UInt32($1) }
        }
        if opcode == 1 || opcode == 2 {
            messageOpcode = opcode
            validator = UTF8Validator()
        }
        self.frame = frame
        head.removeAll(keepingCapacity: true)
        // Memory is allocated for received bytes, not for announced ones: a head alone reserves none, and many small fragments
        // do not copy the message repeatedly.
        return nil
    }

    private func checkFirstByte(_ byte: UInt8) -> (WebSocketCloseCode, String)? {
        let opcode = byte & 0x0F
        if byte & 0x70 != 0 { return (.protocolError, "no negotiated extension uses a reserved bit") }
        switch opcode {
        case 0 where messageOpcode == 0: return (.protocolError, "there is no message to continue")
        case 1 where messageOpcode != 0, 2 where messageOpcode != 0:
            return (.protocolError, "a message begins before the previous one has ended")
        case 0, 1, 2: return nil
        case 8, 9, 10: return byte & 0x80 != 0 ? nil : (.protocolError, "control frames must not be fragmented")
        default: return (.protocolError, "opcode \(opcode) is reserved")
        }
    }

    // MARK: Payload

    private mutating func takePayload(_ bytes: Span<UInt8>, _ events: inout [WebSocketEvent]) {
        guard let current = frame else { return }
        let isControl = current.opcode >= 8
        let start = isControl ? control.count : message.count
        if isControl {
            unsafe bytes.withUnsafeBufferPointer { unsafe control.append(contentsOf: $0) }
            if let mask = current.mask { Self.unmask(&control, from: start, mask, phase: current.maskPhase) }
        } else {
            unsafe bytes.withUnsafeBufferPointer { unsafe message.append(contentsOf: $0) }
            if let mask = current.mask { Self.unmask(&message, from: start, mask, phase: current.maskPhase) }
            if messageOpcode == 1 {
                var checked = validator
                let isText = checked.accept(message.span.extracting(start..<message.count))
                validator = checked
                guard isText else { return fail(.invalidPayload, "text must be UTF-8", &events) }
            }
        }
        frame?.payloadLeft -= bytes.count
        frame?.maskPhase = (current.maskPhase + bytes.count) & 3
    }

    /// Removes the mask, eight bytes at a time.
    static func unmask(_ bytes: inout [UInt8], from start: Int, _ mask: UInt32, phase: Int) {
        let rotation = UInt32(phase * 8)
        let key = rotation == 0 ? mask : (mask >> rotation) | (mask << (32 - rotation))
        let wide = (UInt64(key) << 32 | UInt64(key)).littleEndian
        var index = start
        let count = bytes.count
        unsafe bytes.withUnsafeMutableBytes { raw in
            while index + 8 <= count {
                let word = unsafe raw.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                unsafe raw.storeBytes(of: word ^ wide, toByteOffset: index, as: UInt64.self)
                index += 8
            }
            while index < count {
                let shift = UInt32((index - start) & 3) * 8
                unsafe raw[index] ^= UInt8(truncatingIfNeeded: key >> shift)
                index += 1
            }
        }
    }

    private mutating func endFrame(_ ended: Frame, _ events: inout [WebSocketEvent]) {
        frame = nil
        guard ended.opcode < 8 else {
            let payload = control
            control = []
            return endControl(ended.opcode, payload, &events)
        }
        guard ended.isFinal else { return }
        let opcode = messageOpcode
        let payload = message
        message = []
        messageOpcode = 0
        guard opcode == 1 else { return events.append(.binary(payload)) }
        guard validator.isComplete else { return fail(.invalidPayload, "text must be UTF-8", &events) }
        events.append(.text(payload))
    }

    private mutating func endControl(_ opcode: UInt8, _ payload: [UInt8], _ events: inout [WebSocketEvent]) {
        switch opcode {
        case 9: events.append(.ping(payload))
        case 10: events.append(.pong(payload))
        default:
            guard !payload.isEmpty else {
                isFinished = true
                return events.append(.close(code: nil, reason: ""))
            }
            guard payload.count >= 2 else { return fail(.protocolError, "a close code has two bytes", &events) }
            let code = WebSocketCloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
            guard code.isAllowedOnTheWire else {
                return fail(.protocolError, "close code \(code.rawValue) must not be sent", &events)
            }
            guard let reason = String(validating: payload[2...], as: UTF8.self) else {
                return fail(.invalidPayload, "a reason must be UTF-8", &events)
            }
            isFinished = true
            events.append(.close(code: code, reason: reason))
        }
    }

    private mutating func fail(_ code: WebSocketCloseCode, _ reason: String, _ events: inout [WebSocketEvent]) {
        isFinished = true
        frame = nil
        message = []
        control = []
        events.append(.failed(code: code, reason: reason))
    }
}
