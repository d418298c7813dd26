/// What can be shown at a time while a picture is on its way.
public enum ImageStage: Sendable, Hashable {
    /// The tiny picture that came with the request.
    case placeholder(DecodedImage)
    /// A coarse picture, made of what has arrived. It is never kept and never passes for the picture.
    case preview(DecodedImage)
    /// The picture. Nothing comes after it.
    case image(DecodedImage, from: ImageOrigin)

    /// What to draw.
    public var image: DecodedImage {
        switch self {
        case .placeholder(let image), .preview(let image), .image(let image, _): image
        }
    }
}

/// The stages of a picture as they come; the last one is the picture, or an error is thrown.
///
/// Who comes late gets the newest stage first and misses nothing after it. Several may read at once, each by itself.
public struct ImageStages: AsyncSequence, Sendable {
    /// Gives the stages.
    public struct Iterator: AsyncIteratorProtocol {
        let task: ImageTask
        var seen = 0

        /// The next stage; nil after the picture.
        public mutating func next() async throws(ImageError) -> ImageStage? {
            try take(await task.waiter.stage(after: seen))
        }

        /// The next stage; nil after the picture.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ImageError) -> ImageStage? {
            try take(await task.waiter.stage(after: seen))
        }

        private mutating func take(_ result: Result<(Int, ImageStage)?, ImageError>) throws(ImageError) -> ImageStage? {
            guard let (number, stage) = try result.get() else { return nil }
            seen = number
            return stage
        }
    }

    let task: ImageTask

    /// Begins to read.
    public func makeAsyncIterator() -> Iterator { Iterator(task: task) }
}
