/// What a fetch function learned from its source.
public struct Fetched<Value: Sendable>: Sendable {
    enum Content: Sendable {
        case value(Value)
        case notModified
        case gone
    }

    let content: Content
    /// What to send next time, so that the source can say «not modified»: an ETag, a version, a date.
    public var validator: String?
    /// For how long the source calls it fresh, where that is shorter than the resource's rule.
    public var lifetime: Duration?
    /// How much of it the source gave.
    public var completeness: Completeness
    /// Whether the value may be written to the disk, where its resource is kept there. False for a reply with `Cache-Control:
    /// no-store`: the value stays in memory, and what the disk has of it is removed. It counts for "not modified" too.
    public var mayStore = true
    /// How long ago the origin said this, where a cache on the way has answered (`Age`, RFC 9111 §5.1). The value counts as fetched
    /// and confirmed that much earlier. Not negative.
    public var age: Duration = .zero

    private init(_ content: Content, validator: String?, lifetime: Duration?, completeness: Completeness) {
        self.content = content
        self.validator = validator
        self.lifetime = lifetime
        self.completeness = completeness
    }

    /// The value, where the source gave one.
    public var value: Value? {
        guard case .value(let value) = content else { return nil }
        return value
    }

    /// Whether the source says that there is no such thing.
    public var isGone: Bool {
        if case .gone = content { true } else { false }
    }

    /// The same with another value.
    func map<Other: Sendable>(_ transform: (Value) -> Other) -> Fetched<Other> {
        let content: Fetched<Other>.Content =
            switch content {
            case .value(let value): .value(transform(value))
            case .notModified: .notModified
            case .gone: .gone
            }
        var other = Fetched<Other>(content, validator: validator, lifetime: lifetime, completeness: completeness)
        other.mayStore = mayStore
        other.age = age
        return other
    }

    /// The source gave a value.
    public static func value(
        _ value: Value,
        validator: String? = nil,
        lifetime: Duration? = nil,
        completeness: Completeness = .complete
    ) -> Fetched {
        Fetched(.value(value), validator: validator, lifetime: lifetime, completeness: completeness)
    }

    /// The source says that what it gave last time, under the validator that it was sent, is current: only times are renewed.
    public static func notModified(lifetime: Duration? = nil) -> Fetched {
        Fetched(.notModified, validator: nil, lifetime: lifetime, completeness: .complete)
    }

    /// The source says that there is no such thing (any more): what is stored is removed.
    public static var gone: Fetched { Fetched(.gone, validator: nil, lifetime: nil, completeness: .complete) }
}

/// What a fetch function is told.
public struct FetchContext: Sendable, Hashable {
    /// What the source gave with the stored value; nil where there is none, or it is not good enough to be confirmed.
    public let validator: String?
    /// Whether somebody asked for the network by name, rather than a policy by rule.
    public let isForced: Bool
    /// Whether the answer has to come from the origin: caches on the way must validate what they have (`Cache-Control: no-cache`).
    /// True for a refresh, a gate, a value that was invalidated, bounded staleness, and a policy that wants the network alone.
    public let mustRevalidate: Bool

    /// What a fetch function is told: for those who call one by hand.
    ///
    /// - Parameter mustRevalidate: `isForced` implies it.
    public init(validator: String? = nil, isForced: Bool = false, mustRevalidate: Bool = false) {
        self.validator = validator
        self.isForced = isForced
        self.mustRevalidate = mustRevalidate || isForced
    }
}
