import LarderStorage
import LarderTime

/// Entities whose times are renewed and whose values stay.
extension Commit {
    /// An equal value: only its times are renewed.
    ///
    /// - Parameters:
    ///   - isPart: whether it came as a part of another value: then a lifetime that was stated for itself is not shortened.
    ///   - validator: the validator of the row that is renewed; nil: any.
    mutating func renew(
        _ key: EntityKey,
        _ known: StoredEntity?,
        _ stated: StatedFreshness?,
        isPart: Bool = false,
        ifEntityTag validator: String? = nil,
        _ rows: Rows
    ) throws {
        applied.insert(.entity(key))
        let old = try known?.times ?? storedTimes(key, rows)
        var new = times((old?.stated).updated(by: stated))
        if isPart, let old, !old.isUncertain, old.statedLifetime != nil, old.expiresAt > new.expiresAt {
            new.expiresAt = old.expiresAt
            new.terms = old.terms
        }
        try rows.touch(
            key,
            new,
            isUncertain: new.isUncertain(in: core.clocks.epoch),
            asked: stamp,
            ifEntityTag: validator
        )
        guard var stored = known else {
            entities[key] = .elsewhere
            return
        }
        stored.times.confirm(new)
        stored.asked = max(stored.asked, stamp)
        entities[key] = .set(stored)
    }

    mutating func touch(
        _ key: EntityKey,
        _ validator: String?,
        _ stated: StatedFreshness?,
        _ rows: Rows
    ) throws {
        if isOvertaken(.entity(key), try rows.place(of: .entity(key))?.place) { return }
        let known = current(key)
        // A value with another validator is not the confirmed one.
        if let known, let validator, known.validator != validator { return }
        try renew(key, known, stated, ifEntityTag: known == nil ? validator : nil, rows)
    }

    private func storedTimes(_ key: EntityKey, _ rows: Rows) throws -> Freshness.Times? {
        try rows.entity(key).map { Freshness.Times($0.row, epoch: moment.epoch) }
    }
}
