import Foundation
import Larder
import LarderCoding

/// The freshness, origin and pending changes of a value.
extension Snapshot {
    /// One line: `May be outdated, updated 2 min ago · stale: expired · from disk · 1 change pending`.
    func badge(at now: WallTime) -> String {
        var parts = [notice(at: now).text]
        switch freshness {
        case .fresh: parts.append("fresh")
        case .stale(let reason): parts.append("stale: \(Self.text(reason))")
        case .missing: break
        }
        if let source { parts.append(source == .merged ? "with local changes" : "from \(source.rawValue)") }
        if pendingChanges > 0 { parts.append("\(pendingChanges) change\(pendingChanges == 1 ? "" : "s") pending") }
        if isFetching, freshness != .missing { parts.append("refreshing…") }
        if let refreshError { parts.append("not refreshed: \(refreshError.code.rawValue)") }
        return parts.joined(separator: " · ")
    }

    private static func text(_ reason: Freshness.StaleReason) -> String {
        switch reason {
        case .expired: "expired"
        case .validationRequired: "expired, must be validated"
        case .invalidated: "invalidated"
        case .neverValidated: "never validated"
        case .clockUncertain: "clock set back"
        case .partial: "incomplete"
        case .olderVersion: "newer version exists"
        case .feedBehind: "change feed behind"
        }
    }

    var badgeJSON: JSONValue {
        var reason: JSONValue?
        if case .stale(let why) = freshness { reason = .string(why.rawValue) }
        return .members([
            ("freshness", .string(freshness.isFresh ? "fresh" : reason == nil ? "missing" : "stale")),
            ("reason", reason), ("source", source.map { .string($0.rawValue) }),
            ("validatedAt", validatedAt.flatMap { $0.nanosecondsSinceEpoch == .min ? nil : .string($0.rfc3339()) }),
            ("expiresAt", expiresAt.map { .string($0.rfc3339()) }),
            ("pendingChanges", .integer(Int64(pendingChanges))), ("isFetching", .bool(isFetching)),
            ("failure", refreshError.map { .string($0.code.rawValue) }),
        ])
    }

    /// The output of `--json` for a list.
    func json(with items: some Sequence<some Encodable>) throws -> JSONValue {
        .members([("badge", badgeJSON), ("items", .array(try items.map { try JSONValue(encoding: $0) }))])
    }

    /// The output of `--json` for one value.
    func json(withItem item: some Encodable) throws -> JSONValue {
        .members([("badge", badgeJSON), ("item", try JSONValue(encoding: item))])
    }
}

extension JSONValue {
    /// Encodes a value with `JSONEncoder`.
    init(encoding value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        self = try JSONParser.parse(Array(try encoder.encode(value)))
    }

    /// The value as one line of text.
    var line: String { String(decoding: encoded, as: UTF8.self) }
}
