import Larder
import LarderCoding

/// The freshness, origin and pending changes of a value, in one line.
struct Badge: Sendable, Hashable {
    var freshness: Freshness
    var source: String?
    var validatedAt: WallTime?
    var expiresAt: WallTime?
    /// Whether the clock was set back since, so that the times cannot be trusted.
    var isUncertain = false
    var pendingChanges = 0
    var isFetching = false
    /// The code of the error of the last refresh.
    var failure: String?

    /// `May be outdated, updated 2 min ago · stale: expired · from disk · 1 change pending`.
    func text(at now: WallTime) -> String {
        let notice = Freshness.Notice(
            freshness,
            validatedAt: validatedAt,
            isUncertain: isUncertain,
            isFetching: isFetching,
            isOffline: failure == ErrorCode<LarderError>.offline.rawValue,
            at: now
        )
        var parts = [notice.text]
        switch freshness {
        case .fresh: parts.append("fresh")
        case .stale(let reason): parts.append("stale: \(Self.text(reason))")
        case .missing: break
        }
        if let source { parts.append(source == "merged" ? "with local changes" : "from \(source)") }
        if pendingChanges > 0 { parts.append("\(pendingChanges) change\(pendingChanges == 1 ? "" : "s") pending") }
        if isFetching, freshness != .missing { parts.append("refreshing…") }
        if let failure { parts.append("not refreshed: \(failure)") }
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

    /// The badge of `--json`.
    var json: JSONValue {
        var object = JSONObject()
        switch freshness {
        case .fresh: object["freshness"] = .string("fresh")
        case .missing: object["freshness"] = .string("missing")
        case .stale(let reason):
            object["freshness"] = .string("stale")
            object["reason"] = .string(reason.rawValue)
        }
        object["source"] = source.map { .string($0) }
        object["validatedAt"] = validatedAt.flatMap { $0.nanosecondsSinceEpoch == .min ? nil : .string($0.rfc3339()) }
        object["expiresAt"] = expiresAt.map { .string($0.rfc3339()) }
        object["pendingChanges"] = .integer(Int64(pendingChanges))
        object["isFetching"] = .bool(isFetching)
        object["failure"] = failure.map { .string($0) }
        return .object(object)
    }
}

extension Badge {
    /// The output of `--json` for a list.
    func json(with items: some Sequence<some Encodable>) throws -> JSONValue {
        .members([("badge", json), ("items", .array(try items.map { try JSONValue(encoding: $0) }))])
    }

    /// The output of `--json` for one value.
    func json(withItem item: some Encodable) throws -> JSONValue {
        .members([("badge", json), ("item", try JSONValue(encoding: item))])
    }

    init<Value>(_ snapshot: Snapshot<Value>) {
        freshness = snapshot.freshness
        source = snapshot.source?.rawValue
        validatedAt = snapshot.validatedAt
        expiresAt = snapshot.expiresAt
        isUncertain = snapshot.times?.isUncertain ?? false
        pendingChanges = snapshot.pendingChanges
        isFetching = snapshot.isFetching
        failure = snapshot.refreshError.map { $0.code.rawValue }
    }
}
