package import LarderHTTP
package import LarderTime

/// The `Retry-After` field of a response (RFC 9110 §10.2.3).
package enum RetryAfterField {
    /// The longest wait: a host may recover sooner than it has announced, and a date may be wrong.
    package static let maximum: Duration = .seconds(3_600)

    /// Returns the time to wait from the response's arrival, at most `maximum`; nil if the response does not say.
    ///
    /// A date is compared with the response's `Date` if there is one, because the local clock may be wrong.
    ///
    /// - Parameter other: how long to wait by something else than the field, if the field is missing or invalid.
    package static func wait(
        _ fields: Fields,
        now: WallTime,
        or other: @autoclosure () -> Duration? = nil
    ) -> Duration? {
        let start = fields[.date].flatMap { HTTPDate.parse($0, now: now) } ?? now
        let wait = fields[.retryAfter].flatMap { RetryAfter.wait($0, from: start) } ?? other()
        return wait.map { min(max($0, .zero), maximum) }
    }
}
