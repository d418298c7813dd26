import Foundation
import LarderCoding
public import LarderTime

extension Outbox {
    /// Why and when the server has rejected an operation, or turned it away for a time. It is stored with the operation, until a decision about it
    /// or the next attempt, so that a wait applies to the next process too.
    public struct Rejection: Sendable, Hashable {
        /// The stored form.
        private struct Stored: Decodable, Sendable, Hashable {
            /// The operation's idempotency key: another operation's rejection is not used.
            var key: String
            var code: String
            var status: Int?
            var problem: String?
            var title: String
            var rejectedAt: Int64
            /// Which attempt, and how long the server has asked to wait, in nanoseconds.
            var attempt: Int
            var wait: Int64
        }

        private let stored: Stored

        /// The kind of failure.
        public var code: ErrorCode<LarderError> { ErrorCode(rawValue: stored.code) }
        /// The HTTP status of the reply, if there was one.
        public var status: Int? { stored.status }
        /// The `type` of the problem document in the reply (RFC 9457), if there was one.
        public var problem: String? { stored.problem }
        /// The server's text for people: the title and detail of the problem document, if there was one.
        public var title: String { stored.title }
        /// When it was rejected.
        public var rejectedAt: WallTime { WallTime(nanosecondsSinceEpoch: stored.rejectedAt) }
        /// The rejection as an error.
        public var error: LarderError { LarderError(code, title, status: status, problem: problem) }
        var attempt: Int { stored.attempt }

        /// The maximum number of characters of a stored text. Longer texts are cut.
        private static let textMaximum = 4_096
        /// The longest wait that applies to another process.
        private static let waitMaximum: Duration = .seconds(86_400)

        /// - Parameter wait: how long the server has asked to wait.
        init(_ error: LarderError, of entry: Outbox.Entry, at time: WallTime, wait: Duration = .zero) {
            stored = Stored(
                key: entry.idempotencyKey,
                code: error.code.rawValue,
                status: error.status,
                problem: error.problem.map { String($0.prefix(Self.textMaximum)) },
                title: String(error.description.prefix(Self.textMaximum)),
                rejectedAt: time.nanosecondsSinceEpoch,
                attempt: entry.attempts,
                wait: wait.nanosecondsSaturating
            )
        }

        /// Nil if it belongs to another operation or cannot be decoded, because another version of the app has written it. Only the reason and
        /// the wait are lost: the row itself says that the operation was rejected.
        init?(encoded bytes: [UInt8], for key: String) {
            do { stored = try JSONDecoder().decode(Stored.self, from: Data(bytes)) } catch { return nil }
            guard stored.key == key else { return nil }
        }

        /// The stored form, by the names of the properties.
        var encoded: [UInt8] {
            JSONValue.members([
                "key": .string(stored.key), "code": .string(stored.code),
                "status": status.map { .integer(Int64($0)) }, "problem": problem.map { .string($0) },
                "title": .string(title), "rejectedAt": .integer(stored.rejectedAt),
                "attempt": .integer(Int64(attempt)), "wait": .integer(stored.wait),
            ]).encoded
        }

        /// The rest of the wait; zero if it is over. The wall clock is the only one that survives a restart of the machine: if it is wrong, the wait
        /// is shorter, or begins again, and is never longer than the server has asked.
        func left(at time: WallTime) -> Duration {
            let longest = min(max(.nanoseconds(stored.wait), .zero), Self.waitMaximum)
            return min(max(longest - (time - rejectedAt), .zero), longest)
        }
    }
}
