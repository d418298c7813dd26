import LarderCoding
import LarderTime

/// What a perfect cache would have made of an exchange.
struct ExchangeVerdict: Sendable, Hashable {
    enum Kind: String, Sendable, Hashable {
        /// Nothing was held.
        case first
        /// What was held had to be asked for again, and had changed.
        case changed
        /// It had to be asked for again, and the validator has saved the body.
        case validated
        /// The request says that it must reach the server, as after a pull to refresh.
        case reload
        /// It repeats a request that had failed.
        case retry
        /// The client held the same entity tag: a 304 was possible.
        case notModifiedPossible
        /// What the client held was fresh: no request was necessary.
        case fresh
        /// The same request was in flight.
        case inFlight
        /// `Retry-After` had not passed.
        case tooSoon
        /// A transfer without an idempotency key, or a POST that is repeated without one after its reply was lost.
        case keyMissing
        /// A repeated POST under another key.
        case keyChanged
        /// The same request was sent many times a second and had the same answer.
        case loop
        /// The request or the reply is not as the contract says.
        case contract
    }

    let kind: Kind
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
            "kind": .string(kind.rawValue), "text": .string(text), "entry": other.map { .integer(Int64($0)) },
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
