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

extension Freshness.Times {
    /// The lifetime that the source has stated; nil if it has stated none.
    var statedLifetime: Duration? { terms.contains(.lifetimeStated) ? expiresAt - validatedAt : nil }

    /// What the source has said; nil if it has said nothing.
    var stated: StatedFreshness? {
        guard !terms.isEmpty else { return nil }
        return StatedFreshness(lifetime: statedLifetime, mustRevalidate: terms.contains(.mustRevalidate))
    }
}
