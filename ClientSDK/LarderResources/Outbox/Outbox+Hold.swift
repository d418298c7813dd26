import Foundation
import LarderCoding
import LarderTime

extension Outbox {
    /// A `Retry-After` of the server for an operation. It is stored beside the row, so that it applies to the next process too.
    ///
    /// The time is one of the wall clock, the only clock that survives a restart of the machine. A wrong clock shortens the wait, or repeats it
    /// once; it never makes it longer than the server asked.
    struct Hold: Decodable, Sendable, Hashable {
        /// The operation's idempotency key: another operation's note is not used.
        let key: String
        /// The attempt that the server turned away.
        let attempt: Int
        private let since: Int64
        /// In nanoseconds.
        private let wait: Int64

        /// The longest wait that applies to another process.
        private static let waitMaximum: Duration = .seconds(86_400)

        /// Nil if the server has not asked to wait.
        init?(of entry: Outbox.Entry, for wait: Duration, at time: WallTime) {
            guard wait > .zero else { return nil }
            key = entry.idempotencyKey
            attempt = entry.attempts
            since = time.nanosecondsSinceEpoch
            self.wait = wait.nanosecondsSaturating
        }

        /// Nil if it belongs to another operation or cannot be decoded: then only the wait is lost.
        init?(encoded bytes: [UInt8], for key: String) {
            guard let hold = try? JSONDecoder().decode(Hold.self, from: Data(bytes)), hold.key == key else {
                return nil
            }
            self = hold
        }

        /// The stored form, by the names of the properties.
        var encoded: [UInt8] {
            JSONValue.members([
                "key": .string(key), "attempt": .integer(Int64(attempt)), "since": .integer(since),
                "wait": .integer(wait),
            ]).encoded
        }

        /// The rest of the wait; zero if it is over.
        func left(at time: WallTime) -> Duration {
            let longest = min(max(.nanoseconds(wait), .zero), Self.waitMaximum)
            return min(max(longest - (time - WallTime(nanosecondsSinceEpoch: since)), .zero), longest)
        }
    }
}

extension Outbox.Entry {
    /// Delays the next attempt by the rest of a wait that another process has stored.
    mutating func applyHold(at now: Moment) {
        guard let left = hold?.left(at: now.wall), left > .zero else { return }
        heldUntil = now.uptime + left
    }
}
