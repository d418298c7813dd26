extension ImagePipeline {
    /// The cost of loading and decoding a picture again, and the memory that it takes. It decides which picture is evicted first.
    public struct Cost: Sendable, Hashable {
        /// The size of the pixels in bytes.
        public var byteCount: Int
        /// The size of the file in bytes.
        public var fileByteCount: Int
        /// Whether the file is on disk, so that the picture only needs to be decoded again.
        public var isOnDisk: Bool
        /// The duration of the download; zero if the file came from disk.
        public var loadTime: Duration
        /// The duration of decoding.
        public var decodeTime: Duration

        /// Creates a cost.
        public init(byteCount: Int, fileByteCount: Int, isOnDisk: Bool, loadTime: Duration, decodeTime: Duration) {
            self.byteCount = byteCount
            self.fileByteCount = fileByteCount
            self.isOnDisk = isOnDisk
            self.loadTime = loadTime
            self.decodeTime = decodeTime
        }

        /// The time to make the picture again: decoding, and the download if the file is not on disk; at least 1 ms.
        public var effort: Duration { .milliseconds(1) + decodeTime + (isOnDisk ? .zero : loadTime) }

        /// Nanoseconds of effort for each byte of pixels. Pictures with the lowest value are evicted first.
        public var effortForSize: Double {
            let (seconds, attoseconds) = effort.components
            return (Double(seconds) * 1e9 + Double(attoseconds) / 1e9) / Double(max(1, byteCount))
        }
    }
}

/// A decoded picture in the memory tier.
struct MemoryPicture: Sendable {
    let image: DecodedImage
    /// Identifies the file: pixels of a file that the server has just confirmed need not be decoded again.
    let contentID: String
    /// When the picture may be shown without a request to the server; nil for never.
    let freshness: ImageFreshness?
    let worth: ImagePipeline.Cost
}
