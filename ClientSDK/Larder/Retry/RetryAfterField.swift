import LarderHTTP
import LarderTime

/// How long a reply asks to be left alone (`Retry-After`, RFC 9110 §10.2.3).
enum RetryAfterField {
    /// What the field says, from the reply's arrival; nil where it says nothing, or nothing that can be understood.
    ///
    /// A date is measured against the reply's own `Date` where it has one: both come from one clock, and ours may be wrong.
    static func wait(_ fields: Fields, now: WallTime) -> Duration? {
        guard let text = fields[.retryAfter], !text.isEmpty else { return nil }
        if text.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }) {
            // Longer than any clock runs is as good as for ever.
            return .seconds(min(Int64(text) ?? .max, 1 << 32))
        }
        guard let date = HTTPDate.parse(text, now: now) else { return nil }
        let origin = fields[.date].flatMap { HTTPDate.parse($0, now: now) } ?? now
        return max(.zero, date - origin)
    }
}
