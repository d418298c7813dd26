import LarderCoding
import LarderEvents
import LarderTime

extension TelemetryEvent.Labels {
    /// The members of the JSON object of an event: the labels that are known.
    var members: [(String, JSONValue?)] {
        [
            ("session", session.isEmpty ? nil : .string(session)),
            ("appVersion", appVersion.isEmpty ? nil : .string(appVersion)),
        ]
    }
}

extension TelemetryEvent.Kind {
    /// The value of a member of the JSON object.
    private enum Member {
        /// A text that is the same for all people: one of the SDK, or a short name in the code of an app.
        case word(String)
        /// A private text: it may hold names, URLs or keys.
        case text(String)
        case number(Int)
        /// In nanoseconds.
        case duration(Duration)
        case flag(Bool)

        func json(textMaximum: Int, hidesPrivate: Bool) -> JSONValue {
            switch self {
            case .text where hidesPrivate: .string("<private>")
            case .word(let text), .text(let text):
                .string(text.utf8.count > textMaximum ? text.prefix(utf8Maximum: textMaximum) : text)
            case .number(let number): .integer(Int64(number))
            case .duration(let duration): .integer(duration.nanosecondsSaturating)
            case .flag(let flag): .bool(flag)
            }
        }
    }

    /// The name of the case in JSON.
    public var name: String { content.name }

    /// The name of the case and its members in their order; nil for those that are left out.
    private var content: (name: String, members: [(name: String, value: Member?)]) {
        switch self {
        case .tierHit(let tier, let feature, let bytes):
            ("tierHit", [("tier", .word(tier.rawValue)), ("feature", .word(feature)), ("bytes", Self.known(bytes))])
        case .tierMiss(let tier, let feature):
            ("tierMiss", [("tier", .word(tier.rawValue)), ("feature", .word(feature))])
        case .eviction(let tier, let reason, let count, let bytes):
            (
                "eviction",
                [
                    ("tier", .word(tier.rawValue)), ("reason", .word(reason)), ("count", .number(count)),
                    ("bytes", .number(bytes)),
                ]
            )
        case .merged(let feature): ("merged", [("feature", .word(feature))])
        case .revalidated(let feature, let bytes):
            ("revalidated", [("feature", .word(feature)), ("bytesSaved", .number(bytes))])
        case .retry(let feature, let attempt, let delay):
            ("retry", [("feature", .word(feature)), ("attempt", .number(attempt)), ("delay", .duration(delay))])
        case .outbox(let change, let depth):
            ("outbox", [("change", .word(change.rawValue)), ("depth", .number(depth))])
        case .sync(let feature, let applied, let remaining):
            (
                "sync",
                [
                    ("feature", .word(feature)), ("applied", .number(applied)),
                    ("remaining", remaining.map { .number($0) }),
                ]
            )
        case .image(let stage, let duration, let bytes, let isPrefetch):
            (
                "image",
                [
                    ("stage", .word(stage.rawValue)), ("duration", .duration(duration)), ("bytes", Self.known(bytes)),
                    ("isPrefetch", isPrefetch ? .flag(true) : nil),
                ]
            )
        case .memoryLevel(let level, let old, let cause):
            ("memoryLevel", Self.change(level.description, old.description, cause))
        case .memoryWarning(let level, let cost, let requests, let loads):
            (
                "memoryWarning",
                [
                    ("level", .word(level.description)), ("cost", .number(cost)), ("requests", .number(requests)),
                    ("loads", .number(loads)),
                ]
            )
        case .memoryReaction(let level, let loads, let bytes):
            (
                "memoryReaction",
                [
                    ("level", .word(level.description)), ("loadsCancelled", .number(loads)),
                    ("bytesFreed", .number(bytes)),
                ]
            )
        case .networkLevel(let level, let old, let cause):
            ("networkLevel", Self.change(level.description, old.description, cause))
        case .gateRejected(let feature, let reason):
            ("gateRejected", [("feature", .word(feature)), ("reason", .word(reason))])
        case .request(let feature, let status, let failure, let duration, let received, let sent, let decoded):
            (
                "request",
                [
                    ("feature", .word(feature)), ("status", status.map { .number($0) }),
                    ("failure", failure.map { .word($0) }), ("duration", .duration(duration)),
                    ("bytesReceived", .number(received)), ("bytesSent", .number(sent)),
                    ("bytesDecoded", decoded.map { .number($0) }),
                ]
            )
        case .firstContent(let feature, let tier, let duration):
            (
                "firstContent",
                [("feature", .word(feature)), ("tier", .word(tier.rawValue)), ("duration", .duration(duration))]
            )
        case .storeRecovered(let store, let kept, let isWhole):
            ("storeRecovered", [("store", .text(store)), ("kept", .number(kept)), ("isOutboxWhole", .flag(isWhole))])
        case .flagChanged(let key): ("flagChanged", [("key", .text(key))])
        case .note(let name, let detail):
            ("note", [("name", .word(name)), ("detail", detail.isEmpty ? nil : .text(detail))])
        }
    }

    private static func known(_ bytes: Int) -> Member? { bytes == 0 ? nil : .number(bytes) }

    private static func change(_ level: String, _ old: String, _ cause: String) -> [(String, Member?)] {
        [("level", .word(level)), ("from", .word(old)), ("cause", .word(cause))]
    }

    /// The members of the JSON object, beginning with `kind`.
    ///
    /// - Parameters:
    ///   - textMaximum: the maximum length of texts in bytes; longer ones are truncated.
    ///   - hidesPrivate: whether `<private>` stands for texts that an app or a server may have filled.
    func members(textMaximum: Int, hidesPrivate: Bool = false) -> [(name: String, value: JSONValue)] {
        let (name, members) = content
        return [("kind", .string(name))]
            + members.compactMap { name, value in
                value.map { (name, $0.json(textMaximum: textMaximum, hidesPrivate: hidesPrivate)) }
            }
    }

}

extension String {
    /// The longest prefix of whole characters with at most so many bytes of UTF-8.
    func prefix(utf8Maximum: Int) -> String {
        var count = 0
        let end = indices.first { index in
            count += self[index].utf8.count
            return count > utf8Maximum
        }
        return end.map { String(self[..<$0]) } ?? self
    }
}
