import LarderStorage
package import LarderTime

extension Freshness {
    /// When a value was fetched, when it was validated, and when it expires.
    package struct Times: Sendable, Hashable {
        /// When the content was fetched: the start of the request that returned it.
        package var fetchedAt: WallTime
        /// When the source last confirmed it: the start of that request.
        package var validatedAt: WallTime
        /// When it expires, by the reader's rule or by the lifetime that the source stated.
        package var expiresAt: WallTime
        /// What the source has said about the freshness.
        var terms: RowTimes.Terms = []
        /// The uptime at `validatedAt`, if that was in this process.
        var validatedUptime: MonotonicTime?
        /// The stamp of the request that has confirmed it; of the joined pages of a timeline, the earliest.
        var asked = Stamp.never

        /// Takes the times of a confirmation: the content is as old as before.
        mutating func confirm(_ new: Times) {
            let fetchedAt = fetchedAt
            self = new
            self.fetchedAt = fetchedAt
        }

        /// The lifetime of values that have none.
        static let longestLifetime: Duration = .seconds(30 * 86_400)
        /// The `validatedAt` of a value that the server has never confirmed.
        static let never = WallTime(nanosecondsSinceEpoch: .min)

        /// The times of what the server has never confirmed.
        static let none = Times(fetchedAt: never, validatedAt: never, expiresAt: never)

        /// The times of items of which some have these times and some have others: the items are fresh only while all of them are.
        func mixed(with other: Times) -> Times {
            guard self != other else { return self }
            var times = validatedAt <= other.validatedAt ? self : other
            times.fetchedAt = min(fetchedAt, other.fetchedAt)
            times.expiresAt = min(expiresAt, other.expiresAt)
            times.asked = min(asked, other.asked)
            times.terms = terms.union(other.terms)
            if terms.symmetricDifference(other.terms).contains(.lifetimeStated) { times.terms.insert(.hasUnstatedPart) }
            return times
        }

        /// The time since the value was confirmed; nil if it is unknown.
        ///
        /// The larger age of both clocks: the wall clock may have been set back a little, and the monotonic clock stops
        /// while the machine sleeps.
        func age(at now: Moment) -> Duration? {
            guard validatedAt != Self.never, asked >= now.clock, validatedAt - now.wall <= Moment.tolerance
            else { return nil }
            let wall = max(.zero, now.wall - validatedAt)
            guard let validatedUptime else { return wall }
            return max(wall, now.uptime - validatedUptime)
        }
    }
}

/// A reading of both clocks.
package struct Moment: Sendable, Hashable {
    /// The largest adjustment of a clock that does not count as setting it back.
    static let tolerance: Duration = .seconds(2)

    var wall: WallTime
    var uptime: MonotonicTime
    /// When the wall clock was last set back: what was confirmed before has no known age.
    var clock = Stamp.never

    /// The same moment by the clock of a later one, if the clock was set back in between.
    ///
    /// - Parameter elapsed: the time from this moment to the later one.
    func rebased(to now: Moment, after elapsed: @autoclosure () -> Duration) -> Moment {
        clock < now.clock ? now.before(elapsed()) : self
    }

    /// The moment that was `duration` earlier.
    func before(_ duration: Duration) -> Moment {
        let nanoseconds = max(0, duration.nanosecondsSaturating)
        var moment = self
        moment.wall = wall - .nanoseconds(nanoseconds)
        moment.uptime = MonotonicTime(nanoseconds: uptime.nanoseconds - min(nanoseconds, uptime.nanoseconds))
        return moment
    }
}

/// What a source has said about the freshness of an answer.
struct StatedFreshness: Sendable, Hashable {
    /// The lifetime from the validation; nil if none was stated.
    var lifetime: Duration?
    /// Whether an expired value must not be used in place of a failed validation.
    var mustRevalidate = false

    /// The form in which it is stored.
    var terms: RowTimes.Terms {
        var terms: RowTimes.Terms = mustRevalidate ? .mustRevalidate : []
        if lifetime != nil { terms.insert(.lifetimeStated) }
        return terms
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
    /// The times of a reply to a request that began at a moment, and of what its source has stated.
    init(_ stated: StatedFreshness?, at moment: WallTime, asked: Stamp = .never) {
        self.init(
            fetchedAt: moment,
            validatedAt: moment,
            expiresAt: moment + (stated?.lifetime ?? Self.longestLifetime),
            terms: stated?.terms ?? [],
            asked: asked
        )
    }

    init(_ row: RowTimes, asked: Stamp) {
        self.init(
            fetchedAt: row.fetchedAt,
            validatedAt: row.validatedAt,
            expiresAt: row.expiresAt,
            terms: row.terms,
            asked: asked
        )
    }

    /// The stored form.
    var row: RowTimes {
        RowTimes(fetchedAt: fetchedAt, validatedAt: validatedAt, expiresAt: expiresAt, terms: terms)
    }

    /// The lifetime that the source has stated; nil if it has stated none.
    var statedLifetime: Duration? { terms.contains(.lifetimeStated) ? expiresAt - validatedAt : nil }

    /// What the source has said; nil if it has said nothing.
    var stated: StatedFreshness? {
        guard !terms.isEmpty else { return nil }
        return StatedFreshness(lifetime: statedLifetime, mustRevalidate: terms.contains(.mustRevalidate))
    }
}
