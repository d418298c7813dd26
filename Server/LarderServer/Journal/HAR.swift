import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Exports a journal as an HTTP archive (HAR 1.2). Reply bodies are omitted and secrets are masked.
enum HAR {
    /// Returns the entries as JSON.
    ///
    /// The verdicts are in the member `_verdicts` of an entry, and in its comment.
    ///
    /// - Parameter base: the host and port, and the path of the world.
    static func document(_ entries: [JournalEntry], base: String, version: String) -> JSONValue {
        let exchanges = entries.filter(\.isExchange)
        return .members([
            "log": .members([
                "version": .string("1.2"),
                "creator": .members(["name": .string("larder-server"), "version": .string(version)]),
                "entries": .array(exchanges.map { entry($0, base) }),
            ])
        ])
    }

    private static func entry(_ entry: JournalEntry, _ base: String) -> JSONValue {
        let total = milliseconds(entry.duration)
        let injected = min(total, milliseconds(entry.trace?.injected ?? .zero))
        return .members([
            "startedDateTime": .string((entry.at - entry.duration).rfc3339()),
            "time": .number(total),
            "request": request(entry, base),
            "response": response(entry),
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

    private static func request(_ entry: JournalEntry, _ base: String) -> JSONValue {
        let query = entry.request.query.map { Secrets.masked(query: String(decoding: $0, as: UTF8.self)) } ?? ""
        let url = entry.scheme + base + entry.request.pathText + (query.isEmpty ? "" : "?" + query)
        let parameters = query.split(separator: "&").map { item -> JSONValue in
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count > 1 ? decoded(parts[1]) : ""
            return .members(["name": .string(decoded(parts[0])), "value": .string(value)])
        }
        var body: JSONValue?
        if !entry.request.body.isEmpty {
            body = .members([
                "mimeType": .string(entry.request.fields[.contentType] ?? "application/octet-stream"),
                "text": .string(Secrets.masked(text: entry.request.body)),
            ])
        }
        return .members([
            "method": .string(entry.request.method.rawValue), "url": .string(url),
            "httpVersion": .string("HTTP/1.\(entry.request.minorVersion)"), "cookies": .array([]),
            "headers": JournalEntry.fields(entry.request.fields.all), "queryString": .array(parameters),
            "postData": body,
            "headersSize": .integer(Int64(entry.request.head.count + 4)),
            "bodySize": .integer(Int64(entry.requestBodyBytes)),
        ])
    }

    private static func response(_ entry: JournalEntry) -> JSONValue {
        let isAnswered = entry.status > 0
        let mimeType = entry.replyField("content-type") ?? "x-unknown"
        return .members([
            "status": .integer(isAnswered ? Int64(entry.status) : 0),
            "statusText": .string(isAnswered ? Status(code: entry.status).reasonPhrase : ""),
            "httpVersion": .string("HTTP/1.1"), "cookies": .array([]),
            "headers": JournalEntry.fields(entry.head.fields),
            // The size is that of decoded content.
            "content": .members([
                "size": .integer(Int64(entry.bodyBytes + entry.bytesSavedByCoding)),
                "compression": .integer(Int64(entry.bytesSavedByCoding)), "mimeType": .string(mimeType),
            ]),
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
}
