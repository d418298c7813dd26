import LarderHTTP

/// Finds the end of a head in bytes that come in any pieces, and refuses bare CR and bare LF as soon as they come
/// (RFC 9112 §2.2): what one recipient takes for a line's end and another does not is how requests are smuggled.
struct HeadScanner {
    private enum State {
        /// Empty lines before a request are passed over.
        case before
        case beforeLF
        case line
        case lineLF
        case lineStart
        case endLF
    }

    private var state = State.before
    /// Where the head begins, behind empty lines.
    private(set) var start = 0
    /// How far the bytes have been looked at.
    private(set) var scanned = 0
    /// How long the request line is, once its end has come.
    private(set) var lineCount: Int?

    enum Outcome {
        case incomplete
        /// The head, without its empty line, ends here; the empty line is four bytes with the last line's end.
        case head(Range<Int>)
        case malformed(String)
    }

    /// Looks at the bytes that were not looked at yet. `bytes` begins where it began the last time.
    mutating func scan(_ bytes: Span<UInt8>) -> Outcome {
        var state = self.state
        var index = scanned
        defer {
            self.state = state
            scanned = index
        }
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            switch state {
            case .line:
                if byte == 0x0D { state = .lineLF } else if byte == 0x0A { return .malformed("a bare LF") }
            case .lineLF:
                guard byte == 0x0A else { return .malformed("a bare CR") }
                if lineCount == nil { lineCount = index - 2 - start }
                state = .lineStart
            case .lineStart:
                if byte == 0x0D {
                    state = .endLF
                } else if byte == 0x0A {
                    return .malformed("a bare LF")
                } else {
                    state = .line
                }
            case .endLF:
                guard byte == 0x0A else { return .malformed("a bare CR") }
                return .head(start..<(index - 4))
            case .before:
                if byte == 0x0D {
                    state = .beforeLF
                } else if byte == 0x0A {
                    return .malformed("a bare LF")
                } else {
                    start = index - 1
                    state = .line
                }
            case .beforeLF:
                guard byte == 0x0A else { return .malformed("a bare CR") }
                start = index
                state = .before
            }
        }
        return .incomplete
    }
}

/// Reads the request line and the field lines of a complete head (RFC 9112 §3, §5).
enum HeadParser {
    static let targetBytesMaximum = 8_192

    static func parse(_ head: [UInt8]) throws(Refusal) -> Request {
        let lineEnd = endOfLine(head, from: 0)
        let methodEnd = try end(of: head, from: 0, to: lineEnd)
        guard methodEnd > 0, methodEnd <= 32, head[..<methodEnd].allSatisfy(isTokenByte) else {
            throw Refusal(.malformed, "The request line does not begin with a method.")
        }
        let targetStart = methodEnd + 1
        let targetEnd = try end(of: head, from: targetStart, to: lineEnd)
        let minorVersion = try version(head[(targetEnd + 1)..<lineEnd])
        guard targetEnd - targetStart <= targetBytesMaximum else {
            throw Refusal(.targetTooLong, "The target has more than \(targetBytesMaximum) bytes.")
        }
        let method = method(head[..<methodEnd])
        let (target, pathEnd) = try self.target(head, targetStart..<targetEnd, method)
        let fields = RequestFields(head: head, lines: try lines(head, from: lineEnd + 2))
        if let host = fields.range(of: "host"), !Authority.isValid(head[host]) {
            throw Refusal(.malformed, "Host is not a name or an address with a port.")
        }
        return Request(
            method: method,
            fields: fields,
            minorVersion: minorVersion,
            target: target,
            pathEnd: pathEnd
        )
    }

    /// The usual methods without making a string of each.
    private static func method(_ bytes: ArraySlice<UInt8>) -> Method {
        switch (bytes.count, bytes[0]) {
        case (3, UInt8(ascii: "G")) where bytes.elementsEqual("GET".utf8): .get
        case (4, UInt8(ascii: "P")) where bytes.elementsEqual("POST".utf8): .post
        default: Method(String(decoding: bytes, as: UTF8.self))
        }
    }

    private static func endOfLine(_ head: [UInt8], from start: Int) -> Int {
        var index = start
        while index < head.count, head[index] != 0x0D { index += 1 }
        return index
    }

    private static func end(of head: [UInt8], from start: Int, to lineEnd: Int) throws(Refusal) -> Int {
        var index = start
        while index < lineEnd, head[index] != 0x20 { index += 1 }
        guard index < lineEnd else {
            throw Refusal(.malformed, "The request line is not a method, a target and a version.")
        }
        return index
    }

    private static func version(_ bytes: ArraySlice<UInt8>) throws(Refusal) -> Int {
        let start = bytes.startIndex
        guard bytes.count == 8, bytes.prefix(5).elementsEqual("HTTP/".utf8), bytes[start + 6] == UInt8(ascii: "."),
            bytes[start + 5] &- UInt8(ascii: "0") < 10, bytes[start + 7] &- UInt8(ascii: "0") < 10
        else { throw Refusal(.malformed, "The request line does not end with a version such as HTTP/1.1.") }
        guard bytes[start + 5] == UInt8(ascii: "1") else {
            throw Refusal(.unsupportedVersion, "HTTP/1.1 and HTTP/1.0 are served.")
        }
        return bytes[start + 7] == UInt8(ascii: "0") ? 0 : 1
    }

    /// The target in origin form (RFC 9112 §3.2): the authority of an absolute form is that of this server, whatever it says.
    private static func target(
        _ head: [UInt8],
        _ range: Range<Int>,
        _ method: Method
    ) throws(Refusal) -> (Range<Int>, pathEnd: Int) {
        var start = range.lowerBound
        guard !range.isEmpty else { throw Refusal(.malformed, "The target is empty.") }
        if head[start] != UInt8(ascii: "/") {
            if method == .options, range.count == 1, head[start] == UInt8(ascii: "*") {
                return (range, range.upperBound)
            }
            let text = head[range]
            let prefix = Array("http://".utf8)
            guard text.count > prefix.count,
                text.prefix(prefix.count).map({ $0 | 0x20 }).elementsEqual(prefix.map { $0 | 0x20 })
            else { throw Refusal(.malformed, "The target is neither a path nor an absolute http URI.") }
            let authority = text.dropFirst(prefix.count).prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
            guard !authority.isEmpty, Authority.isValid(authority) else {
                throw Refusal(.malformed, "The target names no host, or one that cannot be.")
            }
            start = authority.endIndex
            guard start < range.upperBound else {
                // An empty path means `/` (RFC 9112 §3.2.2); the one before the authority is as good as any.
                let root = text.startIndex + prefix.count - 1
                return (root..<(root + 1), root + 1)
            }
            guard head[start] == UInt8(ascii: "/") else {
                throw Refusal(.malformed, "The target has a query and no path before it.")
            }
        }
        var pathEnd = range.upperBound
        var index = start
        while index < range.upperBound {
            let byte = head[index]
            guard byte > 0x20, byte < 0x7F, byte != UInt8(ascii: "#") else {
                throw Refusal(.malformed, "The target has a character that must be percent-encoded.")
            }
            if byte == UInt8(ascii: "?"), pathEnd == range.upperBound { pathEnd = index }
            index += 1
        }
        return (start..<range.upperBound, pathEnd)
    }

    private static func lines(_ head: [UInt8], from first: Int) throws(Refusal) -> [RequestFields.Line] {
        var lines: [RequestFields.Line] = []
        lines.reserveCapacity(12)
        var start = first
        while start < head.count {
            var colon = start
            while colon < head.count, isTokenByte(head[colon]) { colon += 1 }
            guard colon > start, colon < head.count, head[colon] == UInt8(ascii: ":") else {
                throw Refusal(.malformed, "A field line does not begin with a name and a colon.")
            }
            var end = colon + 1
            while end < head.count, head[end] != 0x0D {
                guard head[end] >= 0x20 || head[end] == 0x09, head[end] != 0x7F else {
                    throw Refusal(.malformed, "A field value has a control character.")
                }
                end += 1
            }
            let lineEnd = end
            var valueStart = colon + 1
            while valueStart < end, head[valueStart] == 0x20 || head[valueStart] == 0x09 { valueStart += 1 }
            while end > valueStart, head[end - 1] == 0x20 || head[end - 1] == 0x09 { end -= 1 }
            lines.append(
                RequestFields.Line(name: Int32(start)..<Int32(colon), value: Int32(valueStart)..<Int32(end))
            )
            start = lineEnd + 2
        }
        return lines
    }
}
