package import LarderTime

/// The result of a request's conditions.
package enum PreconditionOutcome: Sendable, Hashable {
    /// Carry out the method.
    case proceed
    /// Answer 304: the client's representation is current.
    case notModified
    /// Answer 412: a condition is false.
    case preconditionFailed
}

/// The conditions of a request, evaluated in the order of RFC 9110 §13.2.2.
package struct Preconditions: Sendable, Hashable {
    private let ifMatch: String?
    private let ifNoneMatch: String?
    private let ifModifiedSince: String?
    private let ifUnmodifiedSince: String?

    /// Parses the conditions; nil for missing fields.
    package init(ifMatch: String?, ifNoneMatch: String?, ifModifiedSince: String?, ifUnmodifiedSince: String?) {
        self.ifMatch = ifMatch
        self.ifNoneMatch = ifNoneMatch
        self.ifModifiedSince = ifModifiedSince
        self.ifUnmodifiedSince = ifUnmodifiedSince
    }

    /// Evaluates the conditions.
    ///
    /// A malformed `If-Match` fails; a malformed `If-None-Match` succeeds; invalid dates are ignored (RFC 9110 §13.1.3,
    /// §13.1.4). `*` matches any current representation (§13.1.1, §13.1.2).
    ///
    /// - Parameters:
    ///   - exists: whether the resource has a current representation.
    ///   - entityTag: the tag of the current representation; nil: none.
    ///   - codings: the content codings whose tags of the current representation match as well.
    ///   - lastModified: when it last changed; nil: unknown.
    ///   - now: determines the century of a two-digit year.
    package func evaluate(
        method: Method,
        exists: Bool,
        entityTag: EntityTag?,
        codings: [ContentCoding] = [],
        lastModified: WallTime?,
        now: WallTime
    ) -> PreconditionOutcome {
        func matches(_ condition: String, isStrong: Bool) -> Bool {
            let current = entityTag.map { tag in [tag] + codings.map { tag.coded(by: $0) } } ?? []
            return Self.matches(condition, current, isStrong: isStrong)
        }
        if let ifMatch {
            guard exists, matches(ifMatch, isStrong: true) else { return .preconditionFailed }
        } else if exists, let date = ifUnmodifiedSince.flatMap({ HTTPDate.parse($0, now: now) }), let lastModified {
            guard lastModified.seconds <= date.seconds else { return .preconditionFailed }
        }
        guard exists else { return .proceed }
        let isRead = method == .get || method == .head
        if let ifNoneMatch {
            guard !matches(ifNoneMatch, isStrong: false) else {
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
    ///   - lastModified: when it last changed; nil: unknown.
    ///   - date: the `Date` of the response that the representation comes in, or came in.
    package static func ifRangeHolds(
        _ value: String,
        entityTag: EntityTag?,
        lastModified: WallTime?,
        date sent: WallTime
    ) -> Bool {
        if let tag = EntityTag(parsing: value) { return entityTag.map { tag.stronglyMatches($0) } ?? false }
        guard let date = HTTPDate.parse(value, now: sent), let lastModified else { return false }
        return date.seconds == lastModified.seconds && lastModified.seconds < sent.seconds
    }

    private static func matches(_ condition: String, _ current: [EntityTag], isStrong: Bool) -> Bool {
        switch EntityTagCondition(parsing: condition) {
        case .any: true
        case .tags(let tags):
            current.contains { current in
                tags.contains { isStrong ? $0.stronglyMatches(current) : $0.weaklyMatches(current) }
            }
        case nil: false
        }
    }
}
