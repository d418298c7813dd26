/// What it would take to get a picture's pixels again, and what it takes to keep them: what leaves memory first, and what is
/// spilled, are decided by it.
public struct ImageWorth: Sendable, Hashable {
    /// The bytes of its pixels.
    public var byteCount: Int
    /// The bytes of its file.
    public var fileByteCount: Int
    /// Whether its file is on disk, so that getting it again means to decode it and no more.
    public var isOnDisk: Bool
    /// How long the server took; zero where the file came from disk.
    public var loadTime: Duration
    /// How long decoding and processing took.
    public var decodeTime: Duration

    /// A worth.
    public init(byteCount: Int, fileByteCount: Int, isOnDisk: Bool, loadTime: Duration, decodeTime: Duration) {
        self.byteCount = byteCount
        self.fileByteCount = fileByteCount
        self.isOnDisk = isOnDisk
        self.loadTime = loadTime
        self.decodeTime = decodeTime
    }

    /// How long it would take to get it again: to decode it, and to load it where the disk does not have it; at least 1 ms.
    public var effort: Duration { .milliseconds(1) + decodeTime + (isOnDisk ? .zero : loadTime) }

    /// Effort for each byte that it takes, in nanoseconds: what was cheap to get and is large leaves first.
    public var effortForSize: Double {
        let (seconds, attoseconds) = effort.components
        return (Double(seconds) * 1e9 + Double(attoseconds) / 1e9) / Double(max(1, byteCount))
    }
}

/// What memory keeps of a picture.
struct MemoryPicture: Sendable {
    let image: DecodedImage
    /// Of which file it is: pixels of a file that the server has just confirmed need not be decoded again.
    let contentID: String
    /// Until when it may be shown without asking; nil for never.
    let freshness: ImageFreshness?
    let worth: ImageWorth
}
