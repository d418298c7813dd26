public import LarderStorage

/// The result of a fetch function.
public struct Fetched<Value: Sendable>: Sendable {
    enum Content: Sendable {
        case value(Value)
        case notModified
        case gone
    }

    let content: Content
    /// The validator for the next request, so that the source can answer "not modified": an ETag, a version, a date.
    public var validator: String?
    /// The freshness lifetime that the source states, from the moment of the validation; not negative. It applies to resources
    /// that follow their source (`Freshness.Demand.source`). Nil: none was stated; after "not modified" the known one continues.
    public var lifetime: Duration?
    /// Whether an expired value must not be used in place of a failed validation (`must-revalidate`, `no-cache`). It applies to
    /// resources that follow their source: see `Freshness.StaleReason.validationRequired`.
    public var mustRevalidate = false
    /// How complete the value is.
    public var completeness = Completeness.complete
    /// Whether the value may be written to the disk. False for a reply with `Cache-Control: no-store`: the value stays in memory, and
    /// its copy on disk is removed. It applies to "not modified" too.
    public var mayStore = true
    /// The age of the reply, if a cache on the way has answered (`Age`, RFC 9111 §5.1). The value counts as fetched and validated that
    /// much earlier. Not negative.
    public var age: Duration = .zero

    /// The value, if the source returned one.
    public var value: Value? {
        guard case .value(let value) = content else { return nil }
        return value
    }

    /// Whether the source says that the value does not exist.
    public var isGone: Bool {
        if case .gone = content { true } else { false }
    }

    /// What the source has said about the freshness; nil if it has said nothing.
    var stated: StatedFreshness? {
        guard lifetime != nil || mustRevalidate else { return nil }
        return StatedFreshness(lifetime: lifetime.map { max(.zero, $0) }, mustRevalidate: mustRevalidate)
    }

    /// The same reply with a transformed value: validator, lifetime, age and storage rule stay.
    public func map<Other: Sendable>(_ transform: (Value) -> Other) -> Fetched<Other> {
        let content: Fetched<Other>.Content =
            switch content {
            case .value(let value): .value(transform(value))
            case .notModified: .notModified
            case .gone: .gone
            }
        return Fetched<Other>(
            content: content,
            validator: validator,
            lifetime: lifetime,
            mustRevalidate: mustRevalidate,
            completeness: completeness,
            mayStore: mayStore,
            age: age
        )
    }

    /// The source returned a value.
    public static func value(
        _ value: Value,
        validator: String? = nil,
        lifetime: Duration? = nil,
        completeness: Completeness = .complete
    ) -> Fetched {
        Fetched(content: .value(value), validator: validator, lifetime: lifetime, completeness: completeness)
    }

    /// The source confirmed the value with the validator that it was sent: only times are renewed.
    public static func notModified(lifetime: Duration? = nil) -> Fetched {
        Fetched(content: .notModified, lifetime: lifetime)
    }

    /// The value does not exist at the source: the stored value is removed.
    public static var gone: Fetched { Fetched(content: .gone) }
}

/// What a fetch function is asked for.
public struct FetchContext: Sendable, Hashable {
    /// The validator of the stored value; nil if there is none, or if the value must not be confirmed.
    public let validator: String?
    /// Whether the answer must come from the origin: caches on the way must revalidate (`Cache-Control: no-cache`). True for a refresh,
    /// a gate, an invalidated value, bounded staleness, and a network-only policy.
    public let mustRevalidate: Bool
    /// The stored items of the list that is fetched; nil for other values.
    let stored: StoredItems?
}

extension FetchContext {
    /// Creates a context, for direct calls of a fetch function.
    ///
    /// - Parameters:
    ///   - validator: the validator of the stored value; nil: none.
    ///   - mustRevalidate: whether caches on the way must revalidate.
    public init(validator: String? = nil, mustRevalidate: Bool = false) {
        self.init(validator: validator, mustRevalidate: mustRevalidate, stored: nil)
    }
}
