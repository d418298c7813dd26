import LarderHTTP
import LarderTime

/// How long a reply asks to be left alone (`Retry-After`, RFC 9110 §10.2.3).
enum RetryAfterField {
    /// What the field says, from the reply's arrival; nil where it says nothing, or nothing that can be understood.
    ///
    /// A date is measured against the reply's own `Date` where it has one: both come from one clock, and ours may be wrong.
    static func wait(_ fields: Fields, now: WallTime) -> Duration? {
        RetryAfter(fields, now: now)?.wait(from: fields[.date].flatMap { HTTPDate.parse($0, now: now) } ?? now)
    }
}
