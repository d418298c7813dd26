package import LarderCoding

/// Problem details (RFC 9457): why a request was not carried out.
public struct Problem: Error, Sendable, Hashable {
    /// One thing that is wrong with a request.
    public struct FieldError: Sendable, Hashable {
        /// A JSON pointer into the body, or the name of a parameter or header field.
        public let pointer: String
        /// What is wrong, so that the sentence "`pointer` …" reads on.
        public let detail: String

        /// Something wrong at a place.
        public init(pointer: String, detail: String) {
            self.pointer = pointer
            self.detail = detail
        }
    }

    /// A URI that names the kind of problem; clients decide by it.
    public var type: String
    /// A summary of the kind.
    public var title: String
    /// The status of the reply.
    public var status: Status
    /// What went wrong this time.
    public var detail: String?
    /// What was wrong with the request, each named.
    public var errors: [FieldError]
    /// Header fields that the reply carries besides, such as `Allow`.
    public var fields: Fields
    /// Members of this kind of problem alone.
    package var extensions: JSONObject

    /// A problem of a kind.
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

    /// The problem as JSON, its members in the order of the RFC and extensions after them.
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
