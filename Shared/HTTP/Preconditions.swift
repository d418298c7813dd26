public import LarderTime

/// What the conditions of a request come to.
public enum PreconditionOutcome: Sendable, Hashable {
    /// Carry out the method.
    case proceed
    /// 304: the client has what is current.
    case notModified
    /// 412: nothing may be done.
    case preconditionFailed
}

/// The conditions that a request states, and their evaluation in the order of RFC 9110 §13.2.2.
public struct Preconditions: Sendable, Hashable {
    private let ifMatch: String?
    private let ifNoneMatch: String?
    private let ifModifiedSince: String?
    private let ifUnmodifiedSince: String?

    /// The conditions in the values of these fields; nil for fields that are not there.
    public init(ifMatch: String?, ifNoneMatch: String?, ifModifiedSince: String?, ifUnmodifiedSince: String?) {
        self.ifMatch = ifMatch
        self.ifNoneMatch = ifNoneMatch
        self.ifModifiedSince = ifModifiedSince
        self.ifUnmodifiedSince = ifUnmodifiedSince
    }

    /// Whether there is any condition.
    public var isEmpty: Bool {
        ifMatch == nil && ifNoneMatch == nil && ifModifiedSince == nil && ifUnmodifiedSince == nil
    }

    /// Evaluates the conditions.
    ///
    /// A malformed `If-Match` matches nothing, and so fails; a malformed `If-None-Match` matches nothing, and so holds; dates
    /// that are none are passed over (RFC 9110 §13.1.3, §13.1.4). `*` asks only whether there is a representation (§13.1.1,
    /// §13.1.2).
    ///
    /// - Parameters:
    ///   - exists: whether the resource has a current representation.
    ///   - entityTag: the current representation's tag, if it has one.
    ///   - lastModified: when it last changed, if that is known.
    ///   - now: the time that tells the century of a two-digit year.
    public func evaluate(
        method: Method,
        exists: Bool,
        entityTag: EntityTag?,
        lastModified: WallTime?,
        now: WallTime
    ) -> PreconditionOutcome {
        if let ifMatch {
            guard exists, Self.matches(ifMatch, entityTag, isStrong: true) else { return .preconditionFailed }
        } else if exists, let date = ifUnmodifiedSince.flatMap({ HTTPDate.parse($0, now: now) }), let lastModified {
            guard lastModified.seconds <= date.seconds else { return .preconditionFailed }
        }
        guard exists else { return .proceed }
        let isRead = method == .get || method == .head
        if let ifNoneMatch {
            guard !Self.matches(ifNoneMatch, entityTag, isStrong: false) else {
                return isRead ? .notModified : .preconditionFailed
            }
        } else if isRead, let date = ifModifiedSince.flatMap({ HTTPDate.parse($0, now: now) }), let lastModified {
            guard lastModified.seconds > date.seconds else { return .notModified }
        }
        return .proceed
    }

    /// Whether `If-Range` holds, so that a range may be sent (RFC 9110 §13.1.5): tags compare strongly, and a date must be
    /// exactly that of the representation, and strong: it changed at least a second before it was sent (§8.8.2.2).
    ///
    /// - Parameters:
    ///   - entityTag: the representation's tag, if it has one.
    ///   - lastModified: when it last changed, if that is known.
    ///   - date: the `Date` of the response that the representation comes in, or came in.
    public static func ifRangeHolds(
        _ value: String,
        entityTag: EntityTag?,
        lastModified: WallTime?,
        date sent: WallTime
    ) -> Bool {
        if let tag = EntityTag(parsing: value) { return entityTag.map { tag.stronglyMatches($0) } ?? false }
        guard let date = HTTPDate.parse(value, now: sent), let lastModified else { return false }
        return date.seconds == lastModified.seconds && lastModified.seconds < sent.seconds
    }

    private static func matches(_ condition: String, _ current: EntityTag?, isStrong: Bool) -> Bool {
        switch EntityTagCondition(parsing: condition) {
        case .any: true
        case .tags(let tags):
            current.map { current in
                tags.contains { isStrong ? $0.stronglyMatches(current) : $0.weaklyMatches(current) }
            } ?? false
        case nil: false
        }
    }
}
