/// Durations in fields: whole seconds (RFC 9111 §1.2.2).
package enum DeltaSeconds {
    /// The maximum; larger values are replaced by it: 2³¹ seconds, 68 years (RFC 9111 §1.2.2).
    package static let maximum: Int64 = 2_147_483_648

    /// Parses a number of seconds; nil for anything but digits.
    package static func parse(_ text: some StringProtocol) -> Int64? {
        var value: Int64 = 0
        var isEmpty = true
        for byte in text.utf8 {
            let digit = byte &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            isEmpty = false
            value = min(maximum, value * 10 + Int64(digit))
        }
        return isEmpty ? nil : value
    }
}
