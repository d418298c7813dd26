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
        var writer = JSONWriter(capacity: 384)
        writer.beginObject()
        writer.key("type")
        writer.string(type)
        writer.key("title")
        writer.string(title)
        writer.key("status")
        writer.integer(Int64(status.code))
        if let detail {
            writer.key("detail")
            writer.string(detail)
        }
        if !errors.isEmpty {
            writer.key("errors")
            writer.beginArray()
            for error in errors {
                writer.beginObject()
                writer.key("pointer")
                writer.string(error.pointer)
                writer.key("detail")
                writer.string(error.detail)
                writer.endObject()
            }
            writer.endArray()
        }
        for member in extensions.members {
            writer.key(member.name)
            writer.value(member.value)
        }
        writer.endObject()
        return writer.bytes
    }
}
