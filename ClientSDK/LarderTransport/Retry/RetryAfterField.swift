package import LarderHTTP
package import LarderTime

/// The `Retry-After` field of a response (RFC 9110 §10.2.3).
package enum RetryAfterField {
    /// The longest wait: a host may recover sooner than it has announced, and a date may be wrong.
    package static let maximum: Duration = .seconds(3_600)

    /// Returns the time to wait from the response's arrival, at most `maximum`; nil if the field is missing or invalid.
    ///
    /// A date is compared with the response's `Date` if there is one, because the local clock may be wrong.
    package static func wait(_ fields: Fields, now: WallTime) -> Duration? {
        let start = fields[.date].flatMap { HTTPDate.parse($0, now: now) } ?? now
        return RetryAfter(fields, now: now).map { min($0.wait(from: start), maximum) }
    }
}
