package import LarderTime

/// The value of `Retry-After` (RFC 9110 §10.2.3): seconds from the receipt of the response, or a date on the server's clock.
package enum RetryAfter {
    /// Returns the time to wait; nil if the value is neither seconds nor a date. Not negative.
    ///
    /// - Parameter now: the receipt of the response.
    package static func wait(_ text: String, from now: WallTime) -> Duration? {
        let text = FieldList.trimmed(text)
        if let seconds = DeltaSeconds.parse(text) { return .seconds(seconds) }
        return HTTPDate.parse(text, now: now).map { max(.zero, $0 - now) }
    }
}
