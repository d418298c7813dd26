package import LarderCoding

/// Problem details (RFC 9457): the reason of an error response.
public struct Problem: Error, Sendable, Hashable {
    /// An error in a part of a request.
    public struct FieldError: Sendable, Hashable {
        /// A JSON pointer into the body, or the name of a parameter or header field.
        public let pointer: String
        /// What is wrong, as the rest of a sentence that begins with `pointer`.
        public let detail: String

        /// Creates a field error.
        public init(pointer: String, detail: String) {
            self.pointer = pointer
            self.detail = detail
        }
    }

    /// A URI that identifies the problem type. Clients must decide by it.
    public var type: String
    /// A summary of the problem type.
    public var title: String
    /// The status of the response.
    public var status: Status
    /// What went wrong in this occurrence.
    public var detail: String?
    /// The errors in parts of the request.
    public var errors: [FieldError]
    /// Additional header fields of the response, such as `Allow`.
    public var fields: Fields
    /// Extension members.
    package var extensions: JSONObject

    /// Creates a problem.
    public init(
        type: String,
        title: String,
        status: Status,
        detail: String? = nil,
        errors: [FieldError] = [],
        fields: Fields = Fields()
    ) {
        self.type = type
        self.title = title
        self.status = status
        self.detail = detail
        self.errors = errors
        self.fields = fields
        extensions = JSONObject()
    }

    /// Encodes the problem as JSON: the members of the RFC, then extensions.
    package func encoded() -> [UInt8] {
        let errors = errors.map { JSONValue.members(["pointer": .string($0.pointer), "detail": .string($0.detail)]) }
        let members: [(String, JSONValue?)] = [
            ("type", .string(type)), ("title", .string(title)), ("status", .integer(Int64(status.code))),
            ("detail", detail.map { .string($0) }), ("errors", errors.isEmpty ? nil : .array(errors)),
        ]
        return JSONValue.members(members + extensions.members.map { ($0.name, $0.value) }).encoded
    }
}
