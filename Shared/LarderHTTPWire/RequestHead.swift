package import LarderHTTP

/// The request line and the fields of a request (RFC 9112 §3, §5).
package struct RequestHead: Sendable {
    package static let targetBytesMaximum = 8_192

    package let method: Method
    /// The range in `fields.head` of the target in origin form, or of `*`.
    package let target: Range<Int>
    package let pathEnd: Int
    /// The minor version of HTTP/1: 0 or 1.
    package let minorVersion: Int
    package let fields: FieldLines

    /// Parses a complete head without its empty line. A target with a query and without a path gets the path `/` (RFC 9112 §3.2.1).
    package init(_ received: [UInt8]) throws(Rejection) {
        var head = received
        let lineEnd = FieldLines.endOfLine(head, from: 0)
        let methodEnd = try Self.end(of: head, from: 0, to: lineEnd)
        guard methodEnd > 0, methodEnd <= 32, head[..<methodEnd].allSatisfy(isTokenByte) else {
            throw Rejection(.badRequest, "The request line does not begin with a method.")
        }
        let targetStart = methodEnd + 1
        let targetEnd = try Self.end(of: head, from: targetStart, to: lineEnd)
        minorVersion = try Self.version(head[(targetEnd + 1)..<lineEnd])
        guard targetEnd - targetStart <= Self.targetBytesMaximum else {
            throw Rejection(.uriTooLong, "The target has more than \(Self.targetBytesMaximum) bytes.")
        }
        method = Self.method(head[..<methodEnd])
        (target, pathEnd) = try Self.target(&head, targetStart..<targetEnd, method)
        fields = try FieldLines(head, from: lineEnd + head.count - received.count + 2)
        if let host = fields.range(of: "host"), !Authority.isValid(head[host]) {
            throw Rejection(.badRequest, "Host is not a name or an address with a port.")
        }
    }

    /// Maps the usual methods without allocating strings.
    private static func method(_ bytes: ArraySlice<UInt8>) -> Method {
        switch (bytes.count, bytes[0]) {
        case (3, UInt8(ascii: "G")) where bytes.elementsEqual("GET".utf8): .get
        case (4, UInt8(ascii: "P")) where bytes.elementsEqual("POST".utf8): .post
        default: Method(String(decoding: bytes, as: UTF8.self))
        }
    }

    private static func end(of head: [UInt8], from start: Int, to lineEnd: Int) throws(Rejection) -> Int {
        var index = start
        while index < lineEnd, head[index] != 0x20 { index += 1 }
        guard index < lineEnd else {
            throw Rejection(.badRequest, "The request line is not a method, a target and a version.")
        }
        return index
    }

    private static func version(_ bytes: ArraySlice<UInt8>) throws(Rejection) -> Int {
        let start = bytes.startIndex
        guard bytes.count == 8, bytes.prefix(5).elementsEqual("HTTP/".utf8), bytes[start + 6] == UInt8(ascii: "."),
            bytes[start + 5] &- UInt8(ascii: "0") < 10, bytes[start + 7] &- UInt8(ascii: "0") < 10
        else { throw Rejection(.badRequest, "The request line does not end with a version such as HTTP/1.1.") }
        guard bytes[start + 5] == UInt8(ascii: "1") else {
            throw Rejection(.httpVersionNotSupported, "HTTP/1.1 and HTTP/1.0 are served.")
        }
        return bytes[start + 7] == UInt8(ascii: "0") ? 0 : 1
    }

    /// The target in origin form (RFC 9112 §3.2); the authority of an absolute form is ignored.
    private static func target(
        _ head: inout [UInt8],
        _ range: Range<Int>,
        _ method: Method
    ) throws(Rejection) -> (Range<Int>, pathEnd: Int) {
        var (start, end) = (range.lowerBound, range.upperBound)
        guard !range.isEmpty else { throw Rejection(.badRequest, "The target is empty.") }
        if head[start] != UInt8(ascii: "/") {
            if method == .options, range.count == 1, head[start] == UInt8(ascii: "*") {
                return (range, range.upperBound)
            }
            let text = head[range]
            let schemes = [Array("http://".utf8), Array("https://".utf8)]
            let named = schemes.first { text.prefix($0.count).map { $0 | 0x20 } == $0.map { $0 | 0x20 } }
            guard let prefix = named else {
                throw Rejection(.badRequest, "The target is neither a path nor an absolute http or https URI.")
            }
            let authority = text.dropFirst(prefix.count).prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
            guard !authority.isEmpty, Authority.isValid(authority) else {
                throw Rejection(.badRequest, "The target has no valid host.")
            }
            start = authority.endIndex
            guard start < range.upperBound else {
                // An empty path means `/` (RFC 9112 §3.2.2); the byte before the authority is a slash and is reused.
                let root = text.startIndex + prefix.count - 1
                return (root..<(root + 1), root + 1)
            }
            if head[start] == UInt8(ascii: "?") {
                head.insert(UInt8(ascii: "/"), at: start)
                end += 1
            }
        }
        var pathEnd = end
        var index = start
        while index < end {
            let byte = head[index]
            guard byte > 0x20, byte < 0x7F, byte != UInt8(ascii: "#") else {
                throw Rejection(.badRequest, "The target has a character that must be percent-encoded.")
            }
            if byte == UInt8(ascii: "?"), pathEnd == end { pathEnd = index }
            index += 1
        }
        return (start..<end, pathEnd)
    }
}
