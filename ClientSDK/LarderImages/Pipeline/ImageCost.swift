/// The cost of loading and decoding a picture again, and the memory that it takes. It decides which picture is evicted first.
struct ImageCost: Sendable {
    /// The size of the pixels in bytes.
    var byteCount: Int
    /// Whether the file is on disk, so that the picture only needs to be decoded again.
    var isOnDisk: Bool
    /// The duration of the download; zero if the file came from disk.
    var loadTime: Duration
    /// The duration of decoding.
    var decodeTime: Duration

    /// Nanoseconds for each byte of pixels to make the picture again: decoding, the download if the file is not on disk, and 1 ms.
    /// Pictures with the lowest value are evicted first.
    var effortForSize: Double {
        let effort = .milliseconds(1) + decodeTime + (isOnDisk ? .zero : loadTime)
        return effort / .nanoseconds(1) / Double(max(1, byteCount))
    }
}
