/// A picture as pixels, ready to be drawn. Immutable; copying the value copies no pixels.
public struct DecodedImage: Sendable, Hashable {
    /// How many pixels a row has.
    public let width: Int
    /// How many rows there are.
    public let height: Int
    /// Red, green, blue and alpha of each pixel, 8 bits each, not premultiplied; rows from the top, without gaps.
    public let pixels: [UInt8]
    /// Whether every pixel is opaque by the nature of the file. False says that some may not be.
    public let isOpaque: Bool
    /// The width of the picture in the file, of which this may be a smaller copy or a part.
    public let sourceWidth: Int
    /// The height of the picture in the file.
    public let sourceHeight: Int

    /// A picture from pixels.
    ///
    /// - Precondition: neither side is negative, and there are `width * height * 4` bytes.
    public init(
        width: Int,
        height: Int,
        pixels: [UInt8],
        isOpaque: Bool = false,
        sourceWidth: Int? = nil,
        sourceHeight: Int? = nil
    ) {
        precondition(width >= 0 && height >= 0, "A picture has no negative sides.")
        precondition(pixels.count == width * height * 4, "A picture has four bytes for every pixel.")
        self.width = width
        self.height = height
        self.pixels = pixels
        self.isOpaque = isOpaque
        self.sourceWidth = sourceWidth ?? width
        self.sourceHeight = sourceHeight ?? height
    }

    /// What it costs to keep it, in bytes.
    public var cost: Int { pixels.count }
}
