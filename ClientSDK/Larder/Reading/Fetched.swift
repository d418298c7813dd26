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

    /// What a fetch function is told: for those who call one by hand.
    public init(validator: String? = nil, isForced: Bool = false) {
        self.validator = validator
        self.isForced = isForced
    }
}
