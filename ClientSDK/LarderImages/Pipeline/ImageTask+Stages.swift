extension ImageTask {
    /// A picture or a preliminary version of it.
    public enum Stage: Sendable, Hashable {
        /// The decoded placeholder of the request.
        case placeholder(DecodedImage)
        /// A coarse picture made of the bytes received so far. It is never stored.
        case preview(DecodedImage)
        /// The final picture.
        case image(DecodedImage, from: ImagePipeline.Origin)

        /// The pixels of the stage.
        public var image: DecodedImage {
            switch self {
            case .placeholder(let image), .preview(let image), .image(let image, _): image
            }
        }
    }
}

extension ImageTask {
    /// The stages of a picture as they arrive; the last one is the picture, or an error is thrown.
    ///
    /// A late reader gets the newest stage first and all that follow. Several readers are independent.
    public struct Stages: AsyncSequence, Sendable {
        /// Iterates over the stages.
        public struct Iterator: AsyncIteratorProtocol {
            let task: ImageTask
            var seen = 0

            /// The next stage; nil after the picture.
            public mutating func next() async throws(ImageError) -> ImageTask.Stage? {
                try take(await task.waiter.stage(after: seen))
            }

            /// The next stage; nil after the picture.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(ImageError) -> ImageTask
                .Stage?
            {
                try take(await task.waiter.stage(after: seen))
            }

            private mutating func take(_ result: Result<(Int, ImageTask.Stage)?, ImageError>) throws(ImageError)
                -> ImageTask.Stage?
            {
                guard let (number, stage) = try result.get() else { return nil }
                seen = number
                return stage
            }
        }

        let task: ImageTask

        /// Starts an iteration.
        public func makeAsyncIterator() -> Iterator { Iterator(task: task) }
    }
}
