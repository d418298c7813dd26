/// One event of an event stream.
public struct ServerSentEvent: Sendable, Hashable {
    /// What kind of event it is; `message` where the stream says nothing.
    public var type: String
    /// The data, its lines joined by LF.
    public var data: String
    /// The last id that the stream gave, with this event or before it; empty for none. It is what `Last-Event-ID` resumes from.
    public var id: String

    /// An event.
    public init(type: String = "message", data: String, id: String = "") {
        self.type = type
        self.data = data
        self.id = id
    }
}

/// Reads an event stream (WHATWG HTML §9.2.6) from bytes cut anywhere.
///
/// A value without I/O: bytes go in, events come out. An event that the stream's end cuts off is dropped, as the standard has
/// it. Lines and data beyond `eventBytesMaximum` are an error, because a stream has no end at which to give up.
struct EventStreamParser: Sendable {
    /// An event is larger than may be.
    struct TooLarge: Error, Sendable, Hashable {}

    /// The last id that a whole event has given: what `Last-Event-ID` should say.
    private(set) var lastEventID: String
    /// How long the server wants clients to wait before they come again; nil where it has not said.
    private(set) var retry: Duration?

    private let eventBytesMaximum: Int
    /// The id that counts once the present event is whole: one that is cut off will come again.
    private var id: String
    private var line: [UInt8] = []
    private var skipsLineFeed = false
    private var type = ""
    private var data: [UInt8] = []
    private var hasData = false
    /// How many bytes of a byte order mark have been seen; nil when the stream's beginning is over.
    private var markBytes: Int? = 0

    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// - Parameter lastEventID: the id that the stream is resumed from.
    init(lastEventID: String = "", eventBytesMaximum: Int = 1 << 20) {
        self.lastEventID = lastEventID
        id = lastEventID
        self.eventBytesMaximum = eventBytesMaximum
    }

    /// Reads bytes as they came and appends the events that they complete.
    mutating func receive(_ bytes: [UInt8], _ events: inout [ServerSentEvent]) throws(TooLarge) {
        var rest = bytes[...]
        if markBytes != nil { rest = withoutMark(rest) }
        while let first = rest.first {
            // CR LF is one line's end, also where the two come apart.
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

    /// Leaves out one byte order mark at the very beginning, wherever it is cut.
    private mutating func withoutMark(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var rest = bytes
        while let seen = markBytes, let byte = rest.first {
            if byte == Self.mark[seen] {
                rest.removeFirst()
                markBytes = seen == 2 ? nil : seen + 1
            } else {
                // It was none after all: what looked like one belongs to the first line.
                line.append(contentsOf: Self.mark[..<seen])
                markBytes = nil
            }
        }
        return rest
    }

    private mutating func endLine(_ events: inout [ServerSentEvent]) {
        defer { line.removeAll(keepingCapacity: true) }
        guard !line.isEmpty else { return dispatch(&events) }
        let colon = line.firstIndex(of: UInt8(ascii: ":"))
        // A line that begins with a colon is a comment, and keeps the connection alive.
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

    private mutating func dispatch(_ events: inout [ServerSentEvent]) {
        defer {
            type = ""
            data.removeAll(keepingCapacity: true)
            hasData = false
        }
        lastEventID = id
        guard hasData else { return }
        events.append(
            ServerSentEvent(
                type: type.isEmpty ? "message" : type,
                data: String(decoding: data, as: UTF8.self),
                id: lastEventID
            )
        )
    }
}
