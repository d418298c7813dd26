/// Why bytes are not a picture that can be shown.
public struct ImageDecodingError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What kind of failure it was. A struct, because formats fail in more ways than a list can name.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The code's name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// No decoder knows the format. Register one in `ImageDecoders`, or ask the server for another format.
        public static let unsupportedFormat = Code(rawValue: "unsupportedFormat")
        /// The bytes are not what was written: a checksum is wrong, or something that cannot be. Fetch them again.
        public static let damaged = Code(rawValue: "damaged")
        /// The bytes end too soon. Fetch the rest.
        public static let truncated = Code(rawValue: "truncated")
        /// The picture is larger than the limits allow. Ask for a smaller rendition, or raise `ImageDecodingLimits`.
        public static let tooLarge = Code(rawValue: "tooLarge")
        /// Nobody waits for the picture any more.
        public static let cancelled = Code(rawValue: "cancelled")
    }

    /// What kind of failure it was.
    public let code: Code
    /// What was found, and where.
    public let description: String

    /// A failure of a kind.
    public init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
