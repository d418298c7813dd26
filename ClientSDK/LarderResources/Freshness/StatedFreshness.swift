import LarderStorage
import LarderTime

/// What a source has said about the freshness of an answer.
struct StatedFreshness: Sendable, Hashable {
    /// The lifetime from the validation; nil if none was stated.
    var lifetime: Duration?
    /// Whether an expired value must not be used in place of a failed validation.
    var mustRevalidate = false

    /// The form in which it is stored.
    var terms: DiskEntity.Terms {
        var terms: DiskEntity.Terms = mustRevalidate ? .mustRevalidate : []
        if lifetime != nil { terms.insert(.lifetimeStated) }
        return terms
    }
}

extension StatedFreshness {
    /// What is stored. Nil if the source has said nothing.
    ///
    /// - Parameter lifetime: counts if the terms say that it was stated.
    init?(_ terms: DiskEntity.Terms, lifetime: @autoclosure () -> Duration) {
        guard !terms.isEmpty else { return nil }
        self.init(
            lifetime: terms.contains(.lifetimeStated) ? lifetime() : nil,
            mustRevalidate: terms.contains(.mustRevalidate)
        )
    }
}

extension StatedFreshness? {
    /// What holds after a reply that has confirmed a value has said `other`: a lifetime that it does not state continues.
    func updated(by other: StatedFreshness?) -> StatedFreshness? {
        guard var other else { return self }
        other.lifetime = other.lifetime ?? self?.lifetime
        return other
    }
}

extension Freshness.Times {
    /// The lifetime that the source has stated; nil if it has stated none.
    var statedLifetime: Duration? { terms.contains(.lifetimeStated) ? expiresAt - validatedAt : nil }

    /// What the source has said; nil if it has said nothing.
    var stated: StatedFreshness? { StatedFreshness(terms, lifetime: expiresAt - validatedAt) }
}
