import Foundation
import LarderCoding
import LarderStorage
public import LarderTime

extension Outbox {
    /// Why and when an operation was rejected. It is stored with the operation until a decision about it.
    public struct Rejection: Sendable, Hashable {
        /// The kind of failure.
        public let code: ErrorCode<LarderError>
        /// The HTTP status of the reply, if there was one.
        public let status: Int?
        /// The `type` of the problem document in the reply (RFC 9457), if there was one.
        public let problem: String?
        /// The server's text for people: the title and detail of the problem document, if there was one.
        public let title: String
        /// When it was rejected.
        public let rejectedAt: WallTime

        init(_ error: LarderError, at time: WallTime) {
            code = error.code
            status = error.status
            problem = error.problem
            title = error.description
            rejectedAt = time
        }

        /// The rejection as an error.
        public var error: LarderError { LarderError(code, title, status: status, problem: problem) }

        // MARK: Stored form

        private struct Stored: Decodable {
            var key: String
            var code: String
            var status: Int?
            var problem: String?
            var title: String
            var rejectedAt: Int64
        }

        /// The maximum number of characters of a stored text. Longer texts are cut.
        private static let titleMaximum = 4_096

        /// - Parameter key: the operation's idempotency key. It is stored too, so that a rejection is not used for
        ///   another operation.
        func encoded(for key: String) -> [UInt8] {
            JSONValue.members([
                "key": .string(key), "code": .string(code.rawValue), "status": status.map { .integer(Int64($0)) },
                "problem": problem.map { .string(String($0.prefix(Self.titleMaximum))) },
                "title": .string(String(title.prefix(Self.titleMaximum))),
                "rejectedAt": .integer(rejectedAt.nanosecondsSinceEpoch),
            ]).encoded
        }

        /// Nil if it belongs to another operation or cannot be decoded.
        init?(encoded bytes: [UInt8], for key: String) {
            // Only the reason is lost: the row itself says that the operation was rejected. Another version of the app may have
            // written it.
            guard let stored = try? JSONDecoder().decode(Stored.self, from: Data(bytes)), stored.key == key else {
                return nil
            }
            code = ErrorCode<LarderError>(rawValue: stored.code)
            status = stored.status
            problem = stored.problem
            title = stored.title
            rejectedAt = WallTime(nanosecondsSinceEpoch: stored.rejectedAt)
        }
    }
}
