extension DecodedImage {
    /// The largest picture that is decoded, so that a small file cannot fill the memory.
    public struct Limits: Sendable, Hashable {
        /// The most pixels of the picture in the file, which take time even if the result is small.
        public var sourcePixelsMaximum: Int
        /// The most pixels of the result; each takes four bytes.
        public var resultPixelsMaximum: Int
        /// The most bytes that a decoder keeps besides the file and the result, where a format needs memory for the whole picture:
        /// 3 for each pixel of a usual progressive JPEG, 6 without chroma subsampling, and up to 4 for those of an interlaced PNG.
        public var workingBytesMaximum: Int

        /// Limits of 100 and 32 megapixels and of 256 MiB by default.
        public init(
            sourcePixelsMaximum: Int = 100_000_000,
            resultPixelsMaximum: Int = 32_000_000,
            workingBytesMaximum: Int = 256 << 20
        ) {
            self.sourcePixelsMaximum = sourcePixelsMaximum
            self.resultPixelsMaximum = resultPixelsMaximum
            self.workingBytesMaximum = workingBytesMaximum
        }
    }
}

/// Decodes one file format. PNG and JPEG are built in; conform to this protocol for others and add them to `ImagePipeline.Configuration.decoders`.
///
///     struct GIFDecoder: ImageDecoder {
///         let name = "GIF"
///         func canDecode(_ start: [UInt8]) -> Bool { start.starts(with: Array("GIF8".utf8)) }
///         func decode(_ bytes: [UInt8], into target: ImageTarget?, limits: DecodedImage.Limits)
///             throws(ImageError) -> DecodedImage
///         {
///             // Hand the bytes to the library of your choice. Have it reduce while it decodes, to what
///             // `ImageTarget.plan` says, and report what it rejects as `.damaged` or `.truncated`.
///         }
///     }
///     configuration.decoders.append(GIFDecoder())
///
/// Called on any thread, concurrently. A decoder that takes long checks `Task.isCancelled` regularly and throws `.cancelled`.
public protocol ImageDecoder: Sendable {
    /// The name of the format.
    var name: String { get }

    /// Whether the file has this format.
    ///
    /// - Parameter start: the first bytes of the file, at most 32.
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
    ) throws(ImageError) -> DecodedImage

    /// Throws if the file is certainly incomplete or damaged, without decoding it. Called before bytes are stored.
    func verify(_ bytes: [UInt8]) throws(ImageError)
}

/// A decoder that can show a picture before its file is complete.
package protocol ProgressiveImageDecoder: ImageDecoder {
    /// The finest picture that can be made of the beginning of a file that is still being downloaded.
    ///
    /// - Parameters:
    ///   - start: the first bytes of the file.
    ///   - detail: the detail of the last preview of the same file; 0 before the first one.
    ///   - target: the size to decode to.
    ///   - limits: the largest picture that is decoded.
    /// - Returns: the picture and how fine it is, by the decoder's own measure, at least 1; nil if there is none of a greater detail.
    func preview(
        _ start: [UInt8],
        beyond detail: Int,
        into target: ImageTarget?,
        limits: DecodedImage.Limits
    ) -> (image: DecodedImage, detail: Int)?
}

extension ImageDecoder {
    /// Accepts every file.
    public func verify(_ bytes: [UInt8]) throws(ImageError) {}
}
