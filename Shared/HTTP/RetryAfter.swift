public import LarderTime

/// When to try again (RFC 9110 §10.2.3).
public enum RetryAfter: Sendable, Hashable {
    /// So many seconds after the response came.
    case seconds(Int64)
    /// At a time on the server's clock.
    case date(WallTime)

    /// Reads a field's value: seconds or a date; nil for anything else.
    ///
    /// - Parameter now: the time that tells the century of a two-digit year.
    public init?(parsing text: String, now: WallTime) {
        let text = FieldList.trimmed(text)
        if let seconds = DeltaSeconds.parse(text) {
            self = .seconds(seconds)
        } else if let date = HTTPDate.parse(text, now: now) {
            self = .date(date)
        } else {
            return nil
        }
    }

    /// What a response's fields ask for; nil where they ask for nothing that can be understood.
    public init?(_ fields: Fields, now: WallTime) {
        guard let text = fields[.retryAfter] else { return nil }
        self.init(parsing: text, now: now)
    }

    /// How long to wait, seen from the time at which the response came. Never negative.
    public func wait(from now: WallTime) -> Duration {
        switch self {
        case .seconds(let seconds): .seconds(seconds)
        case .date(let date): max(.zero, date - now)
        }
    }
}
