public import LarderEvents

extension ImageTask {
    /// A picture or a preliminary version of it.
    public enum Stage: Sendable, Hashable {
        /// The decoded placeholder of the request.
        case placeholder(DecodedImage)
        /// A coarse picture made of the bytes received so far. It is never stored.
        case preview(DecodedImage)
        /// The final picture.
        case image(DecodedImage, from: CacheTier)

        /// The pixels of the stage.
        public var image: DecodedImage {
            switch self {
            case .placeholder(let image), .preview(let image), .image(let image, _): image
            }
        }
    }
}

extension ImageTask {
    struct Stages: AsyncSequence, Sendable {
        struct Iterator: AsyncIteratorProtocol {
            let task: ImageTask
            var seen = 0

            mutating func next(isolation actor: isolated (any Actor)?) async throws(ImageError) -> ImageTask.Stage? {
                guard let (number, stage) = try await task.waiter.stage(after: seen).get() else { return nil }
                seen = number
                return stage
            }
        }

        let task: ImageTask

        func makeAsyncIterator() -> Iterator { Iterator(task: task) }
    }
}
