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
        var terms: DiskEntity.Terms
        /// Whether the clock was set back since, so that the times are not meaningful.
        package var isUncertain: Bool
        /// The number of times that the clock was set back before these were taken, within this process.
        var epoch: UInt64
        /// The uptime at `validatedAt`, if that was in this process.
        var validatedUptime: MonotonicTime?

        init(
            fetchedAt: WallTime,
            validatedAt: WallTime,
            expiresAt: WallTime,
            terms: DiskEntity.Terms = [],
            isUncertain: Bool = false,
            epoch: UInt64,
            validatedUptime: MonotonicTime? = nil
        ) {
            self.fetchedAt = fetchedAt
            self.validatedAt = validatedAt
            self.expiresAt = expiresAt
            self.terms = terms
            self.isUncertain = isUncertain
            self.epoch = epoch
            self.validatedUptime = validatedUptime
        }

        /// Takes the times of a confirmation: the content is as old as before.
        mutating func confirm(_ new: Times) {
            let fetchedAt = fetchedAt
            self = new
            self.fetchedAt = fetchedAt
        }

        /// The `validatedAt` of a value that the server has never confirmed.
        static let never = WallTime(nanosecondsSinceEpoch: .min)

        /// Whether the clock was set back since these times were taken.
        ///
        /// - Parameter epoch: the present one (`ClockGuard`).
        func isUncertain(in epoch: UInt64) -> Bool { isUncertain || self.epoch != epoch }

        /// The time since the value was confirmed; nil if it is unknown.
        ///
        /// The larger age of both clocks: the wall clock may have been set back a little, and the monotonic clock stops
        /// while the machine sleeps.
        func age(at now: Moment) -> Duration? {
            guard validatedAt != Self.never, !isUncertain, epoch == now.epoch,
                validatedAt - now.wall <= Moment.tolerance
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
    var epoch: UInt64

    /// The moment that was `duration` earlier.
    func before(_ duration: Duration) -> Moment {
        let nanoseconds = max(0, duration.nanosecondsSaturating)
        var moment = self
        moment.wall = wall - .nanoseconds(nanoseconds)
        moment.uptime = MonotonicTime(nanoseconds: uptime.nanoseconds - min(nanoseconds, uptime.nanoseconds))
        return moment
    }
}
