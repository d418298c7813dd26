/// Something that happened in the image pipeline. Cases may be added.
///
/// Given to `ImagePipeline.Configuration.onEvent` on any thread, outside of all locks.
public enum ImageEvent: Sendable {
    /// A tier had it.
    case hit(url: String, tier: ImageOrigin)
    /// Somebody joined a download that was under way or waiting.
    case mergedDownload(url: String)
    /// Somebody joined a decode of the same result.
    case mergedDecode(url: String)
    /// Bytes are asked for; `offset` is more than 0 where a download goes on.
    case downloadStarted(url: String, offset: Int)
    /// They are all there.
    case downloadFinished(url: String, byteCount: Int, duration: Duration)
    /// What is on disk is still right, said the server.
    case revalidated(url: String, bytesSaved: Int)
    /// A download is tried again after a failure.
    case retried(url: String, attempt: Int, because: ImageError)
    /// What is on disk is shown although it is outdated, because the server gave nothing.
    case staleUsed(url: String, because: ImageError)
    /// The tiny picture that came with the request is shown.
    case placeholder(url: String, duration: Duration)
    /// It is being decoded, after its bytes have waited so long for their turn.
    case decodeBegan(url: String, waited: Duration)
    /// The pixels are there.
    case decoded(url: String, width: Int, height: Int, duration: Duration)
    /// The request's processors have been applied to them.
    case processed(url: String, duration: Duration)
    /// All who waited have it, so long after the first of them asked. What memory has is a `hit`.
    case delivered(url: String, from: ImageOrigin, duration: Duration)
    /// Pixels that were made before are shown again without decoding, because their file is still the same: from memory, after
    /// the server said so, or from disk, where they were spilled.
    case reused(url: String, tier: ImageOrigin)
    /// Bytes were not what was sent; they are gone and are fetched again.
    case damaged(url: String, origin: ImageOrigin)
    /// The last one who waited has left, so the work stopped. `wasRunning` tells whether it had begun.
    case cancelled(url: String, wasRunning: Bool)
    /// There is no picture, and all who wait are told.
    case failed(url: String, ImageError)
    /// Pixels left the memory.
    case evicted(url: String, byteCount: Int, reason: String)
    /// The disk could not be read or written; it went on without.
    case storageFailed(DiskError)
}

/// Where a picture came from.
public enum ImageOrigin: String, Sendable, Hashable {
    /// Its pixels were in memory.
    case memory
    /// Its file was on disk.
    case disk
    /// A server sent it.
    case network
}
