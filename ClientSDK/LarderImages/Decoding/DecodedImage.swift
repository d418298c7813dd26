/// A decoded picture. Immutable; copies share the pixels.
public struct DecodedImage: Sendable, Hashable {
    /// The width in pixels.
    public let width: Int
    /// The height in pixels.
    public let height: Int
    /// RGBA with 8 bits each, not premultiplied; rows from the top, without padding.
    public let pixels: [UInt8]
    /// Whether the file cannot have transparent pixels. False if it may have some.
    public let isOpaque: Bool
    /// The width of the picture in the file, of which this may be a smaller copy or a part.
    public let sourceWidth: Int
    /// The height of the picture in the file.
    public let sourceHeight: Int

    /// A picture made of pixels.
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

    /// The size of the pixels in bytes.
    public var cost: Int { pixels.count }
}
