import Larder
import LarderCoding
import LarderTime

/// How far what is shown can be trusted, in one line.
struct Badge: Sendable, Hashable {
    var freshness: Freshness
    var source: String?
    var validatedAt: WallTime?
    var expiresAt: WallTime?
    /// Whether the clock was set back since, so that the times say nothing.
    var isUncertain = false
    var pendingChanges = 0
    var isFetching = false
    /// Why it could not be refreshed.
    var failure: String?

    /// `updated 2 min ago · stale: expired · from disk · 1 change pending`.
    func text(at now: WallTime) -> String {
        var parts: [String] = []
        if let age = age(at: now) { parts.append(age) }
        switch freshness {
        case .fresh: parts.append("fresh")
        case .stale(let reason): parts.append("stale: \(Self.words(reason))")
        case .missing: parts.append("nothing is stored")
        }
        if let source { parts.append(source == "merged" ? "with what was changed here" : "from \(source)") }
        if pendingChanges > 0 { parts.append("\(pendingChanges) change\(pendingChanges == 1 ? "" : "s") pending") }
        if isFetching { parts.append("refreshing…") }
        if let failure { parts.append("not refreshed: \(failure)") }
        return parts.joined(separator: " · ")
    }

    private func age(at now: WallTime) -> String? {
        guard freshness != .missing else { return nil }
        if isUncertain { return "nobody knows how old" }
        guard let validatedAt else { return nil }
        // What was made here was never confirmed by anybody.
        if validatedAt.nanosecondsSinceEpoch == .min { return "made here" }
        return "updated \(Ages.text(from: validatedAt, to: now))"
    }

    private static func words(_ reason: StaleReason) -> String {
        switch reason {
        case .expired: "expired"
        case .invalidated: "changed elsewhere"
        case .neverValidated: "never confirmed"
        case .clockUncertain: "clock set back"
        case .partial: "a part only"
        case .olderVersion: "a newer version exists"
        case .feedBehind: "changes not followed"
        }
    }

    /// For programs.
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
    /// What a snapshot says of its value.
    init<Value>(_ snapshot: Snapshot<Value>) {
        freshness = snapshot.freshness
        source = snapshot.source?.rawValue
        validatedAt = snapshot.validatedAt
        expiresAt = snapshot.expiresAt
        isUncertain = snapshot.times?.isUncertain ?? false
        pendingChanges = snapshot.pendingChanges
        isFetching = snapshot.activity == .fetching
        failure = snapshot.refreshError.map { $0.code.rawValue }
    }
}
