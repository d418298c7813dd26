import LarderCoding
import LarderEvents
import LarderTime

extension TelemetryEvent.Labels {
    /// Writes the labels that are known.
    func write(to writer: inout JSONWriter) {
        if !session.isEmpty {
            writer.key("session")
            writer.string(session)
        }
        if !appVersion.isEmpty {
            writer.key("appVersion")
            writer.string(appVersion)
        }
    }
}

extension TelemetryEvent.Kind {
    /// The name of the case in JSON.
    public var name: String {
        switch self {
        case .tierHit: "tierHit"
        case .tierMiss: "tierMiss"
        case .eviction: "eviction"
        case .merged: "merged"
        case .revalidated: "revalidated"
        case .retry: "retry"
        case .outbox: "outbox"
        case .sync: "sync"
        case .image: "image"
        case .memoryLevel: "memoryLevel"
        case .memoryWarning: "memoryWarning"
        case .memoryReaction: "memoryReaction"
        case .networkLevel: "networkLevel"
        case .gateRejected: "gateRejected"
        case .request: "request"
        case .firstContent: "firstContent"
        case .storeRecovered: "storeRecovered"
        case .flagChanged: "flagChanged"
        case .note: "note"
        }
    }

    /// Writes the members of the object.
    ///
    /// - Parameters:
    ///   - textMaximum: the maximum length of texts in bytes; longer ones are truncated.
    ///   - hidesPrivate: whether `<private>` stands for texts that an app or a server may have filled.
    func write(to writer: inout JSONWriter, textMaximum: Int, hidesPrivate: Bool = false) {
        var members = TelemetryMembers(writer: writer, textMaximum: textMaximum, hidesPrivate: hidesPrivate)
        members.word("kind", name)
        switch self {
        case .tierHit(let tier, let feature, let bytes):
            members.word("tier", tier.rawValue)
            members.word("feature", feature)
            if bytes != 0 { members.number("bytes", bytes) }
        case .tierMiss(let tier, let feature):
            members.word("tier", tier.rawValue)
            members.word("feature", feature)
        case .eviction(let tier, let reason, let count, let bytes):
            members.word("tier", tier.rawValue)
            members.word("reason", reason)
            members.number("count", count)
            members.number("bytes", bytes)
        case .merged(let feature): members.word("feature", feature)
        case .revalidated(let feature, let bytes):
            members.word("feature", feature)
            members.number("bytesSaved", bytes)
        case .retry(let feature, let attempt, let delay):
            members.word("feature", feature)
            members.number("attempt", attempt)
            members.nanoseconds("delay", delay)
        case .outbox(let change, let depth):
            members.word("change", change.rawValue)
            members.number("depth", depth)
        case .sync(let feature, let applied, let remaining):
            members.word("feature", feature)
            members.number("applied", applied)
            if let remaining { members.number("remaining", remaining) }
        case .image(let stage, let duration, let bytes, let isPrefetch):
            members.word("stage", stage.rawValue)
            members.nanoseconds("duration", duration)
            if bytes != 0 { members.number("bytes", bytes) }
            if isPrefetch {
                members.writer.key("isPrefetch")
                members.writer.bool(true)
            }
        case .memoryLevel(let level, let old, let cause):
            members.word("level", level.description)
            members.word("from", old.description)
            members.word("cause", cause)
        case .memoryWarning(let level, let cost, let requests, let loads):
            members.word("level", level.description)
            members.number("cost", cost)
            members.number("requests", requests)
            members.number("loads", loads)
        case .memoryReaction(let level, let loads, let bytes):
            members.word("level", level.description)
            members.number("loadsCancelled", loads)
            members.number("bytesFreed", bytes)
        case .networkLevel(let level, let old, let cause):
            members.word("level", level.description)
            members.word("from", old.description)
            members.word("cause", cause)
        case .gateRejected(let feature, let reason):
            members.word("feature", feature)
            members.word("reason", reason)
        case .request(let feature, let status, let failure, let duration, let received, let sent, let decoded):
            members.word("feature", feature)
            if let status { members.number("status", status) }
            if let failure { members.word("failure", failure) }
            members.nanoseconds("duration", duration)
            members.number("bytesReceived", received)
            members.number("bytesSent", sent)
            if let decoded { members.number("bytesDecoded", decoded) }
        case .firstContent(let feature, let tier, let duration):
            members.word("feature", feature)
            members.word("tier", tier.rawValue)
            members.nanoseconds("duration", duration)
        case .storeRecovered(let store, let kept, let isWhole):
            members.text("store", store)
            members.number("kept", kept)
            members.writer.key("isOutboxWhole")
            members.writer.bool(isWhole)
        case .flagChanged(let key): members.text("key", key)
        case .note(let name, let detail):
            members.word("name", name)
            if !detail.isEmpty { members.text("detail", detail) }
        }
        writer = members.writer
    }
}

/// Writes members with bounded texts.
private struct TelemetryMembers {
    var writer: JSONWriter
    let textMaximum: Int
    let hidesPrivate: Bool

    /// A private text: it may hold names, URLs or keys.
    mutating func text(_ name: StaticString, _ value: String) { word(name, hidesPrivate ? "<private>" : value) }

    /// A text that is the same for all people: one of the SDK, or a short name in the code of an app.
    mutating func word(_ name: StaticString, _ value: String) {
        writer.key(name)
        writer.string(value.utf8.count > textMaximum ? value.prefix(utf8Maximum: textMaximum) : value)
    }

    mutating func number(_ name: StaticString, _ value: Int) {
        writer.key(name)
        writer.integer(Int64(value))
    }

    mutating func nanoseconds(_ name: StaticString, _ value: Duration) {
        writer.key(name)
        writer.integer(value.nanosecondsSaturating)
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
