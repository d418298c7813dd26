/// Decodes JPEG.
public struct JPEGDecoder: ImageDecoder {
    /// Creates a decoder; it has no settings.
    public init() {}

    public var name: String { "JPEG" }

    /// Whether the file begins with the markers of a JPEG.
    public func canDecode(_ start: [UInt8]) -> Bool { start.starts(with: [0xFF, 0xD8, 0xFF]) }

    /// Verifies the segments and that the file has an end. The coded data has no checksums.
    public func verify(_ bytes: [UInt8]) throws(ImageDecodingError) {
        _ = try JPEGFile(bytes, limits: DecodedImage.Limits(sourcePixelsMaximum: .max, resultPixelsMaximum: .max))
    }

    /// Decodes the picture.
    public func decode(
        _ bytes: [UInt8],
        into target: ImageTarget?,
        limits: DecodedImage.Limits
    ) throws(ImageDecodingError) -> DecodedImage {
        let file = try JPEGFile(bytes, limits: limits)
        let frame = file.frame
        let isTransposed = file.orientation.isTransposed
        let (width, height) = isTransposed ? (frame.height, frame.width) : (frame.width, frame.height)
        let plan = ImageTarget.plan(width: width, height: height, target: target)
        guard plan.width * plan.height <= limits.resultPixelsMaximum else {
            throw ImageDecodingError(
                .tooLarge,
                "The result would have \(plan.width) × \(plan.height) pixels, which is beyond the limits. Give a target."
            )
        }
        let stored = file.orientation.stored(plan, width: frame.width, height: frame.height)
        let layout = JPEGLayout(frame, step: JPEGLayout.step(for: stored))
        var strips = JPEGStrips(layout, file.colors, stored)
        let isPartial = try unsafe JPEGSequentialDecoder.decode(bytes, file, into: &strips)
        _ = isPartial
        return DecodedImage(
            width: plan.width,
            height: plan.height,
            pixels: file.orientation.shown(strips.pixels, width: stored.width, height: stored.height),
            isOpaque: true,
            sourceWidth: width,
            sourceHeight: height
        )
    }

    static let unreadMaximum = 256
    static var unread: ImageDecodingError { ImageDecodingError(.damaged, "unread") }
}
