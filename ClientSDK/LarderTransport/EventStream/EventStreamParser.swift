extension EventStream {
    package struct Event: Sendable, Hashable {
        /// The event type; `message` if the stream has none.
        package var type: String
        /// The data; lines are joined by LF.
        package var data: String
        /// The last ID in the stream up to this event, for `Last-Event-ID`; empty for none.
        package var id: String

        package init(type: String = "message", data: String, id: String = "") {
            self.type = type
            self.data = data
            self.id = id
        }
    }
}

/// Parses an event stream (WHATWG HTML §9.2.6) from bytes in any pieces.
///
/// A value without I/O. An event that is truncated by the end of the stream is dropped, as the standard requires.
/// Lines and data are limited to `eventBytesMaximum`, because a stream has no end.
struct EventStreamParser: Sendable {
    /// An event is larger than `eventBytesMaximum`.
    struct TooLarge: Error, Sendable, Hashable {}

    /// The ID of the last complete event, for `Last-Event-ID`.
    private(set) var lastEventID: String
    /// The server's reconnection time; nil if it has sent none.
    private(set) var retry: Duration?

    private let eventBytesMaximum: Int
    /// The ID of the incomplete event, which takes effect with it.
    private var id: String
    private var line: [UInt8] = []
    private var skipsLineFeed = false
    private var type = ""
    private var data: [UInt8] = []
    private var hasData = false
    /// The number of bytes of a byte order mark that were read; nil after the beginning of the stream.
    private var markBytes: Int? = 0

    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// - Parameter lastEventID: the ID that the stream was resumed from.
    init(lastEventID: String = "", eventBytesMaximum: Int = 1 << 20) {
        self.lastEventID = lastEventID
        id = lastEventID
        self.eventBytesMaximum = eventBytesMaximum
    }

    /// Parses bytes and appends the events that they complete.
    mutating func receive(_ bytes: [UInt8], _ events: inout [EventStream.Event]) throws(TooLarge) {
        var rest = bytes[...]
        if markBytes != nil { rest = withoutMark(rest) }
        while let first = rest.first {
            // CR LF is one line end, also if the two arrive in different pieces.
            if skipsLineFeed {
                skipsLineFeed = false
                if first == UInt8(ascii: "\n") {
                    rest.removeFirst()
                    continue
                }
            }
            guard let end = rest.firstIndex(where: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) else {
                try take(rest)
                return
            }
            try take(rest[..<end])
            skipsLineFeed = rest[end] == UInt8(ascii: "\r")
            rest = rest[(end + 1)...]
            endLine(&events)
        }
    }

    private mutating func take(_ bytes: ArraySlice<UInt8>) throws(TooLarge) {
        guard line.count + data.count + bytes.count <= eventBytesMaximum else { throw TooLarge() }
        line.append(contentsOf: bytes)
    }

    /// Skips one byte order mark at the beginning.
    private mutating func withoutMark(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var rest = bytes
        while let seen = markBytes, let byte = rest.first {
            if byte == Self.mark[seen] {
                rest.removeFirst()
                markBytes = seen == 2 ? nil : seen + 1
            } else {
                // Not a byte order mark: the bytes belong to the first line.
                line.append(contentsOf: Self.mark[..<seen])
                markBytes = nil
            }
        }
        return rest
    }

    private mutating func endLine(_ events: inout [EventStream.Event]) {
        defer { line.removeAll(keepingCapacity: true) }
        guard !line.isEmpty else { return dispatch(&events) }
        let colon = line.firstIndex(of: UInt8(ascii: ":"))
        // A line that begins with a colon is a comment.
        if colon == 0 { return }
        let name = line[..<(colon ?? line.count)]
        var value = colon.map { line[($0 + 1)...] } ?? []
        if value.first == UInt8(ascii: " ") { value.removeFirst() }
        switch String(decoding: name, as: UTF8.self) {
        case "event": type = String(decoding: value, as: UTF8.self)
        case "data":
            if hasData { data.append(UInt8(ascii: "\n")) }
            data.append(contentsOf: value)
            hasData = true
        case "id": if !value.contains(0) { id = String(decoding: value, as: UTF8.self) }
        case "retry":
            if !value.isEmpty, value.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }),
                let milliseconds = Int64(String(decoding: value, as: UTF8.self))
            {
                retry = .milliseconds(min(milliseconds, 1 << 40))
            }
        default: break
        }
    }

    private mutating func dispatch(_ events: inout [EventStream.Event]) {
        defer {
            type = ""
            data.removeAll(keepingCapacity: true)
            hasData = false
        }
        lastEventID = id
        guard hasData else { return }
        events.append(
            EventStream.Event(
                type: type.isEmpty ? "message" : type,
                data: String(decoding: data, as: UTF8.self),
                id: lastEventID
            )
        )
    }
}
