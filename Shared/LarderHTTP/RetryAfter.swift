package import LarderTime

/// The value of `Retry-After` (RFC 9110 §10.2.3).
package enum RetryAfter: Sendable, Hashable {
    /// Seconds from the receipt of the response.
    case seconds(Int64)
    /// A time on the server's clock.
    case date(WallTime)

    /// Parses a field's value: seconds or a date; nil for anything else.
    ///
    /// - Parameter now: determines the century of a two-digit year.
    package init?(parsing text: String, now: WallTime) {
        let text = FieldList.trimmed(text)
        if let seconds = DeltaSeconds.parse(text) {
            self = .seconds(seconds)
        } else if let date = HTTPDate.parse(text, now: now) {
            self = .date(date)
        } else {
            return nil
        }
    }

    /// Parses the field of a response; nil if it is missing or invalid.
    package init?(_ fields: Fields, now: WallTime) {
        guard let text = fields[.retryAfter] else { return nil }
        self.init(parsing: text, now: now)
    }

    /// Returns the time to wait from the receipt of the response. Not negative.
    package func wait(from now: WallTime) -> Duration {
        switch self {
        case .seconds(let seconds): .seconds(seconds)
        case .date(let date): max(.zero, date - now)
        }
    }
}
