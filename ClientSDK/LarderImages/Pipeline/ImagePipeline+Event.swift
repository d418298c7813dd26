package import LarderEvents
package import LarderStorage

extension ImagePipeline {
    /// An event of the image pipeline. Cases may be added.
    ///
    /// Passed to `ImagePipeline.Configuration.onEvent` on any thread, while no lock is held. `isPrefetch` is true if only prefetching
    /// wants the picture at that time.
    package enum Event: Sendable {
        /// A tier had the picture.
        case hit(url: String, tier: CacheTier, isPrefetch: Bool = false)
        /// A request joined a running or waiting download.
        case mergedDownload(url: String)
        /// A request joined a decode of the same result.
        case mergedDecode(url: String)
        /// A download started; `offset` is more than 0 if it resumes an earlier one.
        case downloadStarted(url: String, offset: Int, isPrefetch: Bool = false)
        /// A download is complete.
        case downloadFinished(url: String, byteCount: Int, duration: Duration, isPrefetch: Bool = false)
        /// The server confirmed the stored file (304).
        case revalidated(url: String, bytesSaved: Int)
        /// A download is retried after a failure.
        case retried(url: String, attempt: Int, because: ImageError)
        /// A stale stored file is shown because the server could not be asked or failed.
        case staleUsed(url: String, because: ImageError)
        /// The request's placeholder was decoded.
        case placeholder(url: String, duration: Duration)
        /// A decode started; `waited` is the time since its bytes were complete.
        case decodeBegan(url: String, waited: Duration)
        /// A picture was decoded.
        case decoded(url: String, width: Int, height: Int, duration: Duration)
        /// The picture was delivered; `duration` counts from the first request. A picture from memory is a `hit` instead.
        case delivered(url: String, from: CacheTier, duration: Duration, isPrefetch: Bool = false)
        /// Decoded pixels in memory were reused because the server confirmed that their file has not changed.
        case reused(url: String)
        /// The bytes were damaged. They are removed and fetched again.
        case damaged(url: String, origin: CacheTier)
        /// The last request for the picture was cancelled. `wasRunning` tells whether its work had begun.
        case cancelled(url: String, wasRunning: Bool, isPrefetch: Bool = false)
        /// The request failed.
        case failed(url: String, ImageError)
        /// Pixels were removed from memory.
        case evicted(url: String, byteCount: Int, reason: String)
        /// The disk could not be read or written. The pipeline continues without it.
        case storageFailed(DiskError)
    }
}
