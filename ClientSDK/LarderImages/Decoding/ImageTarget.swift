/// The size in pixels at which a picture will be shown, and how it is scaled to it.
///
/// Pictures are only made smaller: one that is smaller than its target keeps its size and is stretched when it is drawn.
public struct ImageTarget: Sendable, Hashable {
    /// How a picture is scaled to a target of another aspect ratio.
    public enum ContentMode: String, Sendable, Hashable {
        /// Scaled to lie within the target.
        case fit
        /// Scaled to cover the target; the rest is cropped equally on both sides.
        case fill
    }

    /// The target's width in pixels.
    public var width: Int
    /// The target's height in pixels.
    public var height: Int
    /// How another aspect ratio is handled.
    public var mode: ContentMode

    /// A target; sides below 1 pixel are set to 1.
    public init(width: Int, height: Int, mode: ContentMode = .fit) {
        self.width = max(1, width)
        self.height = max(1, height)
        self.mode = mode
    }

    /// The bytes of the pixels of the largest result.
    var bytesMaximum: Int {
        let (pixels, isTooWide) = width.multipliedReportingOverflow(by: height)
        let (bytes, isTooLarge) = pixels.multipliedReportingOverflow(by: 4)
        return isTooWide || isTooLarge ? .max : bytes
    }

    /// The part of the source that is used, and the size of the result.
    public struct Plan: Sendable, Hashable {
        /// The first column used.
        public let x: Int
        /// The first row used.
        public let y: Int
        /// The number of columns used.
        public let sourceWidth: Int
        /// The number of rows used.
        public let sourceHeight: Int
        /// The width of the result.
        public let width: Int
        /// The height of the result.
        public let height: Int

        /// The same part in a result of at most this size; sides below 1 are 1.
        func limited(width widthMaximum: Int, height heightMaximum: Int) -> Plan {
            Plan(
                x: x,
                y: y,
                sourceWidth: sourceWidth,
                sourceHeight: sourceHeight,
                width: min(width, max(1, widthMaximum)),
                height: min(height, max(1, heightMaximum))
            )
        }

        /// - Throws: `.tooLarge` if the result has more pixels than a decoder may make.
        func check(_ limits: DecodedImage.Limits) throws(ImageError) {
            guard width * height <= limits.resultPixelsMaximum else {
                throw ImageError(
                    .tooLarge,
                    "The result would have \(width) × \(height) pixels, which is beyond the limits. Give a target."
                )
            }
        }

        /// Whether pixels are copied without scaling.
        var isCopy: Bool { width == sourceWidth && height == sourceHeight }
    }

    /// How a picture is scaled to a target; nil uses all of its pixels. For decoders.
    ///
    /// - Precondition: `width` and `height` are positive.
    public static func plan(width: Int, height: Int, target: ImageTarget?) -> Plan {
        guard let target else {
            return Plan(x: 0, y: 0, sourceWidth: width, sourceHeight: height, width: width, height: height)
        }
        // Larger targets have the same result, and the products below cannot overflow.
        let targetWidth = min(max(1, target.width), 1 << 20)
        let targetHeight = min(max(1, target.height), 1 << 20)
        let isWider = width * targetHeight > height * targetWidth
        switch target.mode {
        case .fit:
            var (newWidth, newHeight) = (width, height)
            if isWider, width > targetWidth {
                (newWidth, newHeight) = (targetWidth, rounded(height * targetWidth, width))
            } else if !isWider, height > targetHeight {
                (newWidth, newHeight) = (rounded(width * targetHeight, height), targetHeight)
            }
            return Plan(x: 0, y: 0, sourceWidth: width, sourceHeight: height, width: newWidth, height: newHeight)
        case .fill:
            let usedWidth = isWider ? min(width, rounded(height * targetWidth, targetHeight)) : width
            let usedHeight = isWider ? height : min(height, rounded(width * targetHeight, targetWidth))
            return Plan(
                x: (width - usedWidth) / 2,
                y: (height - usedHeight) / 2,
                sourceWidth: usedWidth,
                sourceHeight: usedHeight,
                width: min(targetWidth, usedWidth),
                height: min(targetHeight, usedHeight)
            )
        }
    }

    private static func rounded(_ dividend: Int, _ divisor: Int) -> Int { max(1, (dividend + divisor / 2) / divisor) }
}
