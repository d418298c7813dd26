public import LarderTime

/// Why bytes are not a picture that can be shown.
public struct ImageDecodingError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure.
    public let code: ErrorCode<ImageDecodingError>
    /// What was wrong, and where.
    public let description: String

    /// Creates an image decoding error.
    public init(_ code: ErrorCode<ImageDecodingError>, _ description: String) {
        self.code = code
        self.description = description
    }
}

extension ErrorCode where Scope == ImageDecodingError {
    /// No decoder knows the format. Add one to `ImagePipeline.Configuration.decoders`, or ask the server for another format.
    public static var unsupportedFormat: Self { Self(rawValue: "unsupportedFormat") }
    /// The bytes are not what was written: a checksum is wrong, or something that cannot be. Fetch them again.
    public static var damaged: Self { Self(rawValue: "damaged") }
    /// The bytes end too soon. Fetch the rest.
    public static var truncated: Self { Self(rawValue: "truncated") }
    /// The picture is larger than the limits allow. Ask for a smaller rendition, or raise `DecodedImage.Limits`.
    public static var tooLarge: Self { Self(rawValue: "tooLarge") }
    /// Nobody waits for the picture any more.
    public static var cancelled: Self { Self(rawValue: "cancelled") }
}
