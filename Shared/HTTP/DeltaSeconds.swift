/// Spans of time in fields: a number of whole seconds (RFC 9111 §1.2.2).
public enum DeltaSeconds {
    /// What everything counts as that is larger: 2³¹ seconds, which is 68 years (RFC 9111 §1.2.2).
    public static let maximum: Int64 = 2_147_483_648

    /// Reads a number of seconds: digits and nothing else; nil for anything else.
    public static func parse(_ text: some StringProtocol) -> Int64? {
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
