/// How large a picture may be, so that a small file cannot fill the memory.
public struct ImageDecodingLimits: Sendable, Hashable {
    /// How many pixels the picture in the file may have. They are never all in memory, but they take time.
    public var sourcePixelsMaximum: Int
    /// How many pixels the result may have; each takes four bytes (and 32 more while an interlaced one is made smaller).
    public var resultPixelsMaximum: Int

    /// Limits; 100 and 32 megapixels by default.
    public init(sourcePixelsMaximum: Int = 100_000_000, resultPixelsMaximum: Int = 32_000_000) {
        self.sourcePixelsMaximum = sourcePixelsMaximum
        self.resultPixelsMaximum = resultPixelsMaximum
    }
}

/// Reads one format of pictures. PNG is built in; conform to this for others, and register it in `ImageDecoders`.
///
///     struct JPEGDecoder: ImageDecoder {
///         let name = "JPEG"
///         func canDecode(_ start: [UInt8]) -> Bool { start.starts(with: [0xFF, 0xD8, 0xFF]) }
///         func decode(_ bytes: [UInt8], into target: ImageTarget?, limits: ImageDecodingLimits)
///             throws(ImageDecodingError) -> DecodedImage
///         {
///             // Hand the bytes to the library of your choice. Have it reduce while it decodes, to what
///             // `ImageTarget.plan` says, and report what it refuses as `.damaged` or `.truncated`.
///         }
///     }
///     configuration.decoders = ImageDecoders([PNGDecoder(), JPEGDecoder()])
///
/// Called on any thread, several at once. A decoder that takes long looks at `Task.isCancelled` now and then and throws
/// `.cancelled`: nobody waits then.
public protocol ImageDecoder: Sendable {
    /// What the format is called.
    var name: String { get }

    /// Whether the bytes are of this format.
    ///
    /// - Parameter start: the first bytes of the file, `ImageDecoders.startLength` of them where there are so many.
    func canDecode(_ start: [UInt8]) -> Bool

    /// The picture, made to fit its target while it is decoded.
    ///
    /// - Parameters:
    ///   - bytes: the whole file.
    ///   - target: where it will be shown; nil asks for every pixel.
    ///   - limits: beyond which to throw `.tooLarge` before memory is taken.
    func decode(
        _ bytes: [UInt8],
        into target: ImageTarget?,
        limits: ImageDecodingLimits
    ) throws(ImageDecodingError) -> DecodedImage

    /// Throws where the file is certainly not whole, without decoding it: asked before bytes are stored.
    func verify(_ bytes: [UInt8]) throws(ImageDecodingError)

    /// A coarse picture from the beginning of a file that is still on its way; nil where that much gives none.
    ///
    /// - Parameter detail: 1 for the coarsest, 2, 3 for better ones.
    func preview(
        _ start: [UInt8],
        detail: Int,
        into target: ImageTarget?,
        limits: ImageDecodingLimits
    ) -> DecodedImage?
}

extension ImageDecoder {
    /// Trusts every file until it is decoded.
    public func verify(_ bytes: [UInt8]) throws(ImageDecodingError) {}

    /// Makes nothing of a part.
    public func preview(
        _ start: [UInt8],
        detail: Int,
        into target: ImageTarget?,
        limits: ImageDecodingLimits
    ) -> DecodedImage? { nil }
}
