import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// HTTP archives (HAR 1.2): the journal, without the bodies of replies and with secrets masked, and recordings, which have both as they were
/// sent.
enum HAR {
    /// A request as it was received, and the reply to it.
    typealias Whole = (request: Request, reply: Reply)

    /// An archive of entries in JSON.
    ///
    /// - Parameter isComplete: whether none is missing because a recording was full.
    static func document(_ entries: [[UInt8]], isComplete: Bool = true) -> [UInt8] {
        let creator = JSONValue.members(["name": .string("larder-server"), "version": .string(serverVersion)])
        let head = JSONValue.members([
            "version": .string("1.2"), "creator": creator, "_isComplete": isComplete ? nil : .bool(false),
        ]).encoded
        var bytes = Array("{\"log\":".utf8)
        bytes += head.dropLast()
        bytes += Array(",\"entries\":[".utf8)
        bytes += entries.joined(separator: [UInt8(ascii: ",")])
        return bytes + Array("]}}".utf8)
    }

    /// The exchanges of a journal. The verdicts are in the member `_verdicts` of an entry, and in its comment.
    ///
    /// - Parameter base: the host and port, and the path of the world.
    static func document(_ entries: [JournalEntry], base: String) -> [UInt8] {
        document(entries.filter(\.isExchange).map { entry($0, base).encoded })
    }

    /// - Parameters:
    ///   - base: what precedes the path in the URL.
    ///   - whole: the exchange with its bodies and secrets; nil: without.
    static func entry(_ entry: JournalEntry, _ base: String, _ whole: Whole? = nil) -> JSONValue {
        let total = milliseconds(entry.duration)
        let injected = min(total, milliseconds(entry.trace?.injected ?? .zero))
        return .members([
            "startedDateTime": .string((entry.at - entry.duration).rfc3339()),
            "time": .number(total),
            "request": request(entry, base, whole?.request),
            "response": response(entry, whole?.reply),
            "cache": .object(JSONObject()),
            "timings": .members([
                "blocked": .number(injected), "send": .integer(0), "wait": .number(total - injected),
                "receive": .integer(0),
            ]),
            "connection": .string(String(entry.connection)),
            "_verdicts": entry.verdicts.isEmpty ? nil : .array(entry.verdicts.map(\.json)),
            "comment": .string((comment(entry) + entry.verdicts.map(\.text)).joined(separator: ", ")),
        ])
    }

    private static func request(_ entry: JournalEntry, _ base: String, _ whole: Request?) -> JSONValue {
        let request = whole ?? entry.request
        var query = request.query.map { String(decoding: $0, as: UTF8.self) }
        if whole == nil { query = query.map { Secrets.masked(query: $0) } }
        let url = entry.scheme + base + request.pathText + (query.map { "?" + $0 } ?? "")
        let parameters = (query ?? "").split(separator: "&").map { item -> JSONValue in
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count > 1 ? decoded(parts[1]) : ""
            return .members(["name": .string(decoded(parts[0])), "value": .string(value)])
        }
        var body: [(String, JSONValue?)] = []
        if !request.body.isEmpty {
            body = [("mimeType", .string(request.fields[.contentType] ?? "application/octet-stream"))]
            // The format has no coding of its own for what is not text.
            body +=
                whole == nil
                ? [("text", .string(Secrets.masked(text: request.body)))]
                : text(of: request.body, coding: "_encoding")
        }
        return .members([
            "method": .string(request.method.rawValue), "url": .string(url),
            "httpVersion": .string("HTTP/1.\(request.minorVersion)"), "cookies": .array([]),
            "headers": JournalEntry.fields(request.fields.all, areMasked: whole == nil),
            "queryString": .array(parameters), "postData": body.isEmpty ? nil : .members(body),
            "headersSize": .integer(Int64(request.head.count + 4)),
            "bodySize": .integer(Int64(entry.requestBodyBytes)),
        ])
    }

    private static func response(_ entry: JournalEntry, _ whole: Reply?) -> JSONValue {
        // The size is that of decoded content.
        var content: [(String, JSONValue?)] = [
            ("size", .integer(Int64(entry.bodyBytes + entry.bytesSavedByCoding))),
            ("compression", .integer(Int64(entry.bytesSavedByCoding))),
            ("mimeType", .string(entry.replyField("content-type") ?? "x-unknown")),
        ]
        if let body = whole?.bytes {
            let (plain, problem) = decoded(body, entry.replyField("content-encoding"))
            content += text(of: plain, coding: "encoding")
            if let problem { content += [("_isCoded", .bool(true)), ("comment", .string(problem))] }
        }
        return .members([
            "status": .integer(Int64(entry.status)),
            "statusText": .string(entry.status > 0 ? Status(code: entry.status).reasonPhrase : ""),
            "httpVersion": .string("HTTP/1.1"), "cookies": .array([]),
            "headers": JournalEntry.fields(entry.head.fields, areMasked: whole == nil), "content": .members(content),
            "redirectURL": .string(""), "headersSize": .integer(-1), "bodySize": .integer(Int64(entry.bodyBytes)),
        ])
    }

    private static func comment(_ entry: JournalEntry) -> [String] {
        let faults = entry.trace?.decisions.map { "\($0.fault.id) (\($0.fault.action.name))" } ?? []
        return [entry.outcome] + faults
    }

    private static func decoded(_ text: Substring) -> String {
        QueryString.percentDecoded(Array(text.utf8)) ?? String(text)
    }

    private static func milliseconds(_ duration: Duration) -> Double {
        Double(duration.nanosecondsSaturating / 1_000) / 1_000
    }

    // MARK: Bodies

    /// The content of a body. What cannot be decoded here, or is too large, is kept as it was sent, with the reason.
    private static func decoded(_ body: [UInt8], _ name: String?) -> (content: [UInt8], problem: String?) {
        guard let name else { return (body, nil) }
        guard let coding = ContentCoding(name: name) else { return (body, "The coding '\(name)' is not decoded here.") }
        do { return (try coding.decode(body), nil) } catch { return (body, error.description) }
    }

    /// A body as text, or in Base64 if it is none, which the member `coding` says.
    private static func text(of body: [UInt8], coding: String) -> [(String, JSONValue?)] {
        if let text = String(validating: body, as: UTF8.self) { return [("text", .string(text))] }
        return [("text", .string(Base64.encode(body))), (coding, .string("base64"))]
    }

    /// The bytes of a `postData` or a `content`; nil without a text.
    ///
    /// - Throws: `FileError` for damaged Base64.
    static func bytes(of json: JSONValue?) throws(FileError) -> [UInt8]? {
        guard let text = json?["text"]?.string else { return nil }
        guard (json?["encoding"] ?? json?["_encoding"]) == .string("base64") else { return Array(text.utf8) }
        guard let bytes = Base64.decode(text) else { throw FileError("`text` is no Base64 of one line") }
        return bytes
    }
}
