import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// A reply that a fault sends instead of the server's.
public struct CannedReply: Sendable, Hashable {
    /// The form of `Retry-After`.
    public enum RetryAfter: Sendable, Hashable {
        case seconds(Int)
        /// An HTTP date that many seconds from now, in the world's time.
        case date(inSeconds: Int)
    }

    /// The status code, from 200 to 599.
    public var status: Int
    /// The name of one of the server's problem types; nil selects one by the status.
    public var problem: String?
    /// The problem's `detail`.
    public var detail: String?
    /// Additional fields.
    public var headers: [String: String] = [:]
    /// A body instead of a problem.
    public var body: String?
    /// The media type of `body`.
    public var contentType: String?
    /// `Retry-After`; nil for none.
    public var retryAfter: RetryAfter?

    /// A problem with a status.
    public init(status: Int) { self.status = status }
}

extension CannedReply: FaultEffect {
    static let kind = FaultKind(
        "respond",
        CannedReply(status: 500),
        at: [.afterRead, .beforeRead, .requestBody, .afterCommit],
        "another reply",
        members,
        need: .all(["status"])
    )

    /// Also those of the answer to an exchange that a gate holds.
    static let members: [FaultMember<CannedReply>] = [
        .init("status", \.status, .integer(200...599), example: 503), problemMember,
        .init("detail", \.detail, .text(), example: "busy"), headersMember,
        bodyMember, .init("contentType", \.contentType, .text(length: 1...200), example: "text/html"), retryAfterMember,
    ]

    private static let problemMember = FaultMember<CannedReply>(
        name: "problem",
        schema: .members([
            "type": .string("string"), "description": .string("the name of a problem type, see /problems"),
        ]),
        example: .string("service-unavailable"),
        read: { reader, reply in
            reply.problem = reader.string("problem", length: 1...100)
            guard let problem = reply.problem, ProblemType(rawValue: problem) == nil else { return }
            reader.failChoice("problem", ProblemType.allCases.map(\.rawValue))
        },
        write: { $0.problem.map { .string($0) } }
    )

    private static let bodyMember = FaultMember<CannedReply>(
        name: "body",
        schema: .members(["description": .string("a text, or any other JSON value, which is sent as JSON")]),
        example: .string("<p>Sign in</p>"),
        read: { reader, reply in
            reply.body = reader.value("body")?.text
            if reply.body?.utf8.count ?? 0 > 1 << 20 { reader.fail("body", "must have at most 1 MiB") }
        },
        write: { $0.body.map { .string($0) } }
    )

    private static let headersMember = FaultMember<CannedReply>(
        name: "headers",
        schema: .members([
            "type": .string("object"), "additionalProperties": .members(["type": .string("string")]),
        ]),
        example: .members(["X-Reason": .string("test")]),
        read: { reader, reply in
            reply.headers = reader.texts("headers")
            for error in reply.headerErrors { reader.fail("headers", error) }
        },
        write: { JSONValue.texts($0.headers) }
    )

    private static let retryAfterMember = FaultMember<CannedReply>(
        name: "retryAfter",
        schema: .members([
            "type": .string("object"),
            "properties": .members(["seconds": delaySchema, "dateInSeconds": delaySchema]),
            "additionalProperties": .bool(false), "description": .string("one of the two members"),
        ]),
        example: .members(["seconds": .integer(30)]),
        read: { reader, reply in
            guard let retry = reader.child("retryAfter") else { return }
            if let seconds = retry.integer("seconds", in: 0...31_536_000) {
                reply.retryAfter = .seconds(seconds)
            } else if let seconds = retry.integer("dateInSeconds", in: 0...31_536_000) {
                reply.retryAfter = .date(inSeconds: seconds)
            } else {
                retry.failMissing(anyOf: ["seconds", "dateInSeconds"], "or `dateInSeconds` must be an integer")
            }
        },
        write: { reply in
            switch reply.retryAfter {
            case .seconds(let seconds)?: .members(["seconds": .integer(Int64(seconds))])
            case .date(let seconds)?: .members(["dateInSeconds": .integer(Int64(seconds))])
            case nil: nil
            }
        }
    )

    private static let delaySchema = JSONValue.members(["type": .string("integer"), "minimum": .integer(0)])

    static func read(_ reader: BodyReader) -> CannedReply? { kind.read(reader) as? CannedReply }

    var ending: FaultEnding? { .respond(self) }

    /// The fields that frame a reply or state its time. The server writes them itself.
    private static let serverFields = [
        "connection", "content-length", "date", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// What is wrong with the names and values in `headers`.
    var headerErrors: [String] {
        headers.sorted { $0.key < $1.key }.compactMap { name, value in
            if FieldName(name) == nil { return "has '\(name)', which is not a valid field name" }
            if Self.serverFields.contains(name.lowercased()) {
                return "has '\(name)', which the server writes; truncate and malformedChunk change a reply's framing, "
                    + "and a skew its date"
            }
            return value.hasControlCharacter ? "has a control character in the value of '\(name)'" : nil
        }
    }
}

extension String {
    /// Whether it cannot be the value of a field.
    var hasControlCharacter: Bool { utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F } }
}
