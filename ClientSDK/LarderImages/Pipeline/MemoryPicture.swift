import LarderTime

/// A decoded picture in the memory tier.
struct MemoryPicture: Sendable {
    let image: DecodedImage
    /// Identifies the file: pixels of a file that the server has just confirmed need not be decoded again.
    let contentID: String
    /// When the picture may be shown without a request to the server; nil for never.
    let freshness: Range<WallTime>?
    /// The time to get the pixels again: that of decoding, and of the download if the file is not on disk.
    let effort: Duration
    /// Whether the picture may be shown when it is stale and no request may be sent.
    var mayBeStale = false
    /// When the file was loaded; nil before it is known.
    var loadedAt: MonotonicTime?

    /// Nanoseconds of the effort and a millisecond for each byte. Pictures with the lowest value are evicted first.
    var score: Double { (.milliseconds(1) + effort) / .nanoseconds(1) / Double(max(1, image.cost)) }
}
