/// The size, in pixels, at which a picture will be shown, and how it is brought there.
///
/// Pictures are made smaller and never larger: where one is smaller than its target, whoever draws it stretches it, which
/// costs no memory.
public struct ImageTarget: Sendable, Hashable {
    /// How a picture and a target of other proportions are brought together.
    public enum ContentMode: String, Sendable, Hashable {
        /// The whole picture, within the target.
        case fit
        /// The target is filled; what sticks out is cut off on both sides alike.
        case fill
    }

    /// The target's width in pixels.
    public var width: Int
    /// The target's height in pixels.
    public var height: Int
    /// How other proportions are dealt with.
    public var mode: ContentMode

    /// A target; sides of less than a pixel count as one.
    public init(width: Int, height: Int, mode: ContentMode = .fit) {
        self.width = max(1, width)
        self.height = max(1, height)
        self.mode = mode
    }

    /// Where the pixels of a smaller picture come from.
    public struct Plan: Sendable, Hashable {
        /// The first column of the source that is used.
        public let x: Int
        /// The first row of the source that is used.
        public let y: Int
        /// How many columns of the source are used.
        public let sourceWidth: Int
        /// How many rows of the source are used.
        public let sourceHeight: Int
        /// The width of the result.
        public let width: Int
        /// The height of the result.
        public let height: Int

        /// Whether pixels are taken as they are.
        var isCopy: Bool { width == sourceWidth && height == sourceHeight }
    }

    /// How a picture of that size comes into a target; nil takes all of it as it is. For decoders.
    ///
    /// - Precondition: the picture's sides are positive and its target's sides are too.
    public static func plan(width: Int, height: Int, target: ImageTarget?) -> Plan {
        guard let target else {
            return Plan(x: 0, y: 0, sourceWidth: width, sourceHeight: height, width: width, height: height)
        }
        // A target beyond all pictures is as good as the largest, and its products cannot overflow.
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
