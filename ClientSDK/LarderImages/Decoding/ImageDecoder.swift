extension DecodedImage {
    /// The largest picture that is decoded, so that a small file cannot fill the memory.
    public struct Limits: Sendable, Hashable {
        /// The most pixels of the picture in the file. They are never all in memory, but they take time.
        public var sourcePixelsMaximum: Int
        /// The most pixels of the result; each takes four bytes (and 32 more while an interlaced picture is downsampled).
        public var resultPixelsMaximum: Int

        /// Limits of 100 and 32 megapixels by default.
        public init(sourcePixelsMaximum: Int = 100_000_000, resultPixelsMaximum: Int = 32_000_000) {
            self.sourcePixelsMaximum = sourcePixelsMaximum
            self.resultPixelsMaximum = resultPixelsMaximum
        }
    }
}

/// Decodes one file format. PNG is built in; conform to this protocol for others and add them to `ImageDecoders`.
///
///     struct JPEGDecoder: ImageDecoder {
///         let name = "JPEG"
///         func canDecode(_ start: [UInt8]) -> Bool { start.starts(with: [0xFF, 0xD8, 0xFF]) }
///         func decode(_ bytes: [UInt8], into target: ImageTarget?, limits: DecodedImage.Limits)
///             throws(ImageDecodingError) -> DecodedImage
///         {
///             // Hand the bytes to the library of your choice. Have it reduce while it decodes, to what
///             // `ImageTarget.plan` says, and report what it refuses as `.damaged` or `.truncated`.
///         }
///     }
///     configuration.decoders = ImageDecoders([PNGDecoder(), JPEGDecoder()])
///
/// Called on any thread, concurrently. A decoder that takes long checks `Task.isCancelled` regularly and throws `.cancelled`.
public protocol ImageDecoder: Sendable {
    /// The name of the format.
    var name: String { get }

    /// Whether the file has this format.
    ///
    /// - Parameter start: the first bytes of the file, at most `ImageDecoders.startLength`.
    func canDecode(_ start: [UInt8]) -> Bool

    /// Decodes the picture, downsampled to its target.
    ///
    /// - Parameters:
    ///   - bytes: the whole file.
    ///   - target: the size at which it will be shown; nil for all pixels.
    ///   - limits: the limits beyond which to throw `.tooLarge`, before memory is allocated.
    func decode(
        _ bytes: [UInt8],
        into target: ImageTarget?,
        limits: DecodedImage.Limits
    ) throws(ImageDecodingError) -> DecodedImage

    /// Throws if the file is certainly incomplete or damaged, without decoding it. Called before bytes are stored.
    func verify(_ bytes: [UInt8]) throws(ImageDecodingError)

    /// A coarse picture from the beginning of a file that is still being downloaded; nil if there are too few bytes.
    ///
    /// - Parameter detail: 1 for the coarsest, 2, 3 for better ones.
    func preview(
        _ start: [UInt8],
        detail: Int,
        into target: ImageTarget?,
        limits: DecodedImage.Limits
    ) -> DecodedImage?
}

extension ImageDecoder {
    /// Accepts every file.
    public func verify(_ bytes: [UInt8]) throws(ImageDecodingError) {}

    /// Decodes no previews.
    public func preview(
        _ start: [UInt8],
        detail: Int,
        into target: ImageTarget?,
        limits: DecodedImage.Limits
    ) -> DecodedImage? { nil }
}
