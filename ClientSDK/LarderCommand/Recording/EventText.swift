import Larder
import LarderCoding

extension TelemetryEvent.Kind {
    /// Decodes a recorded event; nil if another version has written it or it was truncated.
    init?(_ record: FlightRecorder.Record) {
        do throws(JSONError) { self.init(recorded: try JSONParser.parse(Array(record.json.utf8))) } catch { return nil }
    }

    /// Decodes the JSON of a recorded event; nil for an unknown kind.
    init?(recorded json: JSONValue) {
        func text(_ name: String) -> String? { json[name]?.string }
        func number(_ name: String) -> Int { Int(clamping: json[name]?.integer ?? 0) }
        func time(_ name: String) -> Duration { .nanoseconds(json[name]?.integer ?? 0) }
        let feature = text("feature") ?? TelemetryTotals.other
        let tier = text("tier").flatMap { CacheTier(rawValue: $0) }
        switch (text("kind"), tier) {
        case ("tierHit", let tier?): self = .tierHit(tier, feature: feature, bytes: number("bytes"))
        case ("tierMiss", let tier?): self = .tierMiss(tier, feature: feature)
        case ("eviction", let tier?):
            self = .eviction(
                tier,
                reason: text("reason") ?? TelemetryTotals.other,
                count: number("count"),
                bytes: number("bytes")
            )
        case ("firstContent", let tier?): self = .firstContent(feature: feature, from: tier, after: time("duration"))
        case ("merged", _): self = .merged(feature: feature)
        case ("revalidated", _): self = .revalidated(feature: feature, bytesSaved: number("bytesSaved"))
        case ("retry", _): self = .retry(feature: feature, attempt: number("attempt"), delay: time("delay"))
        case ("outbox", _):
            guard let change = text("change").flatMap({ OutboxStep(rawValue: $0) }) else {
                return nil
            }
            self = .outbox(change, depth: number("depth"))
        case ("sync", _):
            let remaining = json["remaining"]?.integer.map { Int(clamping: $0) }
            self = .sync(feature: feature, applied: number("applied"), remaining: remaining)
        case ("image", _):
            guard let stage = text("stage").flatMap({ TelemetryEvent.ImageStage(rawValue: $0) }) else { return nil }
            self = .image(
                stage,
                duration: time("duration"),
                bytes: number("bytes"),
                isPrefetch: json["isPrefetch"]?.bool ?? false
            )
        case ("memoryLevel", _):
            guard let level = Self.memory(text("level")), let old = Self.memory(text("from")) else { return nil }
            self = .memoryLevel(level, from: old, cause: text("cause") ?? "")
        case ("memoryWarning", _):
            guard let level = Self.memory(text("level")) else { return nil }
            self = .memoryWarning(level, cost: number("cost"), requests: number("requests"), loads: number("loads"))
        case ("memoryReaction", _):
            guard let level = Self.memory(text("level")) else { return nil }
            self = .memoryReaction(level, loadsCancelled: number("loadsCancelled"), bytesFreed: number("bytesFreed"))
        case ("networkLevel", _):
            guard let level = Self.network(text("level")), let old = Self.network(text("from")) else { return nil }
            self = .networkLevel(level, from: old, cause: text("cause") ?? "")
        case ("gateRejected", _): self = .gateRejected(feature: feature, reason: text("reason") ?? "")
        case ("request", _):
            // One that did not fit its record has no members.
            guard json["duration"] != nil else { return nil }
            self = .request(
                feature: feature,
                status: json["status"]?.integer.map { Int(clamping: $0) },
                failure: text("failure"),
                duration: time("duration"),
                bytesReceived: number("bytesReceived"),
                bytesSent: number("bytesSent"),
                bytesDecoded: json["bytesDecoded"]?.integer.map { Int(clamping: $0) }
            )
        case ("storeRecovered", _):
            self = .storeRecovered(
                store: text("store") ?? "",
                kept: number("kept"),
                isOutboxWhole: json["isOutboxWhole"]?.bool ?? false
            )
        case ("note", _): self = .note(name: text("name") ?? "", detail: text("detail") ?? "")
        default: return nil
        }
    }

    private static func memory(_ text: String?) -> MemoryLevel? { text.flatMap { MemoryLevel(rawValue: $0) } }

    private static func network(_ text: String?) -> NetworkLevel? { text.flatMap { NetworkLevel(rawValue: $0) } }
}

/// Formats recorded events.
enum EventText {
    /// One line: the kind, and its members as `name=value`, as `--trace` prints them.
    static func text(_ record: FlightRecorder.Record) -> String {
        let json: JSONValue
        do { json = try JSONParser.parse(Array(record.json.utf8)) } catch { return record.json }
        guard case .object(let object) = json else { return record.json }
        return TelemetryEvent.line(object.members.map { ($0.name, $0.value) })
    }
}
