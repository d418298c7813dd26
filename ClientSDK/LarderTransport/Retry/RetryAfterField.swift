package import LarderHTTP
package import LarderTime

/// The `Retry-After` field of a response (RFC 9110 §10.2.3).
package enum RetryAfterField {
    /// Returns the time to wait from the response's arrival; nil if the field is missing or invalid.
    ///
    /// A date is compared with the response's `Date` if there is one, because the local clock may be wrong.
    package static func wait(_ fields: Fields, now: WallTime) -> Duration? {
        RetryAfter(fields, now: now)?.wait(from: fields[.date].flatMap { HTTPDate.parse($0, now: now) } ?? now)
    }
}
