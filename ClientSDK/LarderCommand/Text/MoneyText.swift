import LarderArguments
import LarderModels

/// Parses and formats amounts of money without floating point.
enum MoneyText {
    /// The number of digits after the point (ISO 4217); two for currencies that are not listed.
    static func digits(_ currency: String) -> Int {
        switch currency.uppercased() {
        case "JPY", "KRW", "VND", "CLP", "ISK", "PYG", "UGX", "XAF", "XOF", "XPF": 0
        case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND": 3
        default: 2
        }
    }

    /// `12.50 EUR`.
    static func text(_ money: Money) -> String {
        let digits = digits(money.currency)
        let sign = money.minorUnits < 0 ? "-" : ""
        // `Int64.min` has no positive counterpart.
        var text = String(money.minorUnits.magnitude)
        guard digits > 0 else { return "\(sign)\(text) \(money.currency)" }
        if text.utf8.count <= digits { text = String(repeating: "0", count: digits + 1 - text.utf8.count) + text }
        return "\(sign)\(text.dropLast(digits)).\(text.suffix(digits)) \(money.currency)"
    }

    /// Throws if the text is not an amount of any currency.
    static func check(_ text: String) throws(UsageError) { _ = try parts(text, "12.50") }

    private static func parts(_ text: String, _ example: String) throws(UsageError) -> (Substring, Substring) {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let isNumber = parts.allSatisfy { part in
            !part.isEmpty && part.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        }
        guard isNumber, let whole = parts.first else {
            throw UsageError(message: "'\(text)' is not an amount; write it like \(example)")
        }
        return (whole, parts.count > 1 ? parts[1] : "")
    }

    /// Reads `12`, `12.5` or `12.50` as an amount in a currency.
    static func parse(_ text: String, currency: String) throws(UsageError) -> Money {
        let digits = digits(currency)
        let example = digits == 0 ? "12" : "12." + String("500".prefix(digits))
        let (whole, fraction) = try parts(text, example)
        guard fraction.utf8.count <= digits else {
            throw UsageError(message: "\(currency) has \(digits) digits after the point; '\(text)' has more")
        }
        let padding = String(repeating: "0", count: digits - fraction.utf8.count)
        guard let units = Int64(String(whole) + fraction + padding) else {
            throw UsageError(message: "'\(text)' is too large for an amount")
        }
        guard units > 0 else { throw UsageError(message: "the amount must be greater than zero, such as \(example)") }
        return Money(minorUnits: units, currency: currency)
    }
}
