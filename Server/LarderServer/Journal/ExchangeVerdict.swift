import LarderCoding
import LarderTime

/// What a perfect cache would have made of an exchange.
struct ExchangeVerdict: Sendable, Hashable {
    /// One sentence, without secrets.
    var text: String
    /// The entry that it follows from; nil for none.
    var other: Int?
    /// Bytes that a perfect cache would not have received.
    var wastedBytes = 0
    /// Time that a perfect cache would not have spent, on the server's clock.
    var wastedTime = Duration.zero
    /// Body bytes that the validator has saved.
    var savedBytes = 0
    /// The rule of the conduct report that this breaks.
    var rule: ConductReport.Rule?

    var json: JSONValue {
        .members([
            "text": .string(text), "entry": other.map { .integer(Int64($0)) },
            "wastedBytes": wastedBytes > 0 ? .integer(Int64(wastedBytes)) : nil,
            "wastedSeconds": wastedTime > .zero ? .seconds(wastedTime) : nil,
            "savedBytes": savedBytes > 0 ? .integer(Int64(savedBytes)) : nil,
            "rule": rule.map { .string($0.rawValue) },
        ])
    }

    /// A duration in seconds, with a tenth where that matters; a short one in milliseconds.
    static func seconds(_ duration: Duration) -> String {
        let nanoseconds = duration.nanosecondsSaturating
        if (1..<50_000_000).contains(nanoseconds) { return "\((nanoseconds + 999_999) / 1_000_000) ms" }
        // Rounded without an overflow at the end of the range.
        let tenths = nanoseconds / 100_000_000 + (nanoseconds % 100_000_000 >= 50_000_000 ? 1 : 0)
        return tenths >= 100 || tenths % 10 == 0 ? "\((tenths + 5) / 10) s" : "\(tenths / 10).\(tenths % 10) s"
    }
}
