package import LarderTime

extension Freshness {
    /// What to tell a person about a value: a case to localise, with a default text in English.
    ///
    /// Ages are nil if they are unknown, because the clock was set back.
    public enum Notice: Sendable, Hashable {
        /// There is no value, and none is on its way.
        case missing
        /// There is no value yet; a request is in flight.
        case loading
        /// The value is fresh. The argument is the time since the server confirmed it.
        case updated(Duration?)
        /// The value is not fresh.
        case outdated(Duration?)
        /// The value is missing or not fresh, and the server cannot be reached.
        case offline(Duration?)
        /// The value was created on this device, and the server has not confirmed it.
        case unconfirmed

        /// The notice in English: `Updated 2 min ago`, `May be outdated, updated 3 h ago`, `Offline`.
        public var text: String {
            switch self {
            case .missing: "Not loaded"
            case .loading: "Loading…"
            case .updated(let age): age.map { "Updated \(Self.ago($0))" } ?? "Updated"
            case .outdated(let age): age.map { "May be outdated, updated \(Self.ago($0))" } ?? "May be outdated"
            case .offline(let age): age.map { "Offline, updated \(Self.ago($0))" } ?? "Offline"
            case .unconfirmed: "Not on the server yet"
            }
        }

        private static func ago(_ age: Duration) -> String {
            age < .seconds(2) ? "just now" : "\(rounded(age)) ago"
        }

        /// `12 s`, `2 min`, `3 h`, `5 d`: rounded down to one unit.
        package static func rounded(_ duration: Duration) -> String {
            let seconds = duration.components.seconds
            switch seconds {
            case ..<60: return "\(seconds) s"
            case ..<3_600: return "\(seconds / 60) min"
            case ..<86_400: return "\(seconds / 3_600) h"
            default: return "\(seconds / 86_400) d"
            }
        }

        /// - Parameters:
        ///   - validatedAt: when the server last confirmed the value; nil without a value.
        ///   - isFetching: whether a request is in flight.
        ///   - isOffline: whether the server cannot be reached.
        ///   - now: the present time.
        package init(
            _ freshness: Freshness,
            validatedAt: WallTime?,
            isFetching: Bool,
            isOffline: Bool,
            at now: WallTime
        ) {
            let isConfirmed = validatedAt != Freshness.Times.never
            let isKnown = isConfirmed && freshness != .stale(.clockUncertain)
            let age = isKnown ? validatedAt.map { max(.zero, now - $0) } : nil
            switch freshness {
            case .missing: self = isOffline ? .offline(nil) : isFetching ? .loading : .missing
            case _ where !isConfirmed: self = .unconfirmed
            case .fresh: self = .updated(age)
            case .stale: self = isOffline ? .offline(age) : .outdated(age)
            }
        }
    }
}
