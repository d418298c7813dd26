import LarderHTTPWire

/// The bytes that a connection is about to write, with an optional body that is not copied.
struct WriteBuffer {
    private(set) var bytes: [UInt8] = []
    private(set) var body: [UInt8] = []

    /// A shorter body is copied: a second buffer costs the system call as much (0.5 µs, measured with the replies of a proxy).
    private static let copiedBodyBytesMaximum = 4 << 10

    var count: Int { bytes.count + body.count }

    var isEmpty: Bool { bytes.isEmpty && body.isEmpty }

    mutating func append(contentsOf more: [UInt8]) {
        if !body.isEmpty { join() }
        bytes.append(contentsOf: more)
    }

    /// Appends a head, the `Date` line, `Connection`, and the empty line. In one call, because each access to the buffer costs an
    /// exclusivity check.
    mutating func append(head: ReplyHead, date: [UInt8], connection: StaticString) {
        if !body.isEmpty { join() }
        bytes.append(contentsOf: head.bytes)
        bytes.append(contentsOf: date)
        if connection.utf8CodeUnitCount > 0 { append(connection) }
        append("\r\n")
    }

    mutating func append(_ text: StaticString) {
        if !body.isEmpty { join() }
        bytes.append(text)
    }

    mutating func append(body more: [UInt8]) {
        if !body.isEmpty { join() }
        if more.count < Self.copiedBodyBytesMaximum { bytes.append(contentsOf: more) } else { body = more }
    }

    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        body = []
    }

    mutating func reserveCapacity(_ count: Int) { bytes.reserveCapacity(count) }

    /// A copy of the bytes after an offset.
    func suffix(from start: Int) -> [UInt8] {
        if start >= bytes.count { return Array(body[(start - bytes.count)...]) }
        return Array(bytes[start...]) + body
    }

    private mutating func join() {
        bytes.append(contentsOf: body)
        body = []
    }
}
