package import LarderImages
import LarderTelemetry
import LarderTime

extension Telemetry {
    /// Records an event of an image pipeline, for its `Configuration.onEvent`. All images that readers wait for are one feature, and those
    /// that only prefetching wants another, with `.prefetch` after its name: so prefetching does not count as hits or misses of readers.
    package func record(_ event: ImagePipeline.Event) {
        let feature = event.isPrefetch ? "images.prefetch" : "images"
        switch event {
        case .hit(_, let tier, _):
            // Memory was checked before.
            if tier == .disk { record(.tierMiss(.memory, feature: feature)) }
            record(.tierHit(tier, feature: feature))
        case .mergedDownload, .mergedDecode: record(.merged(feature: feature))
        case .downloadStarted(_, let offset, _):
            record(.tierMiss(.memory, feature: feature))
            record(.tierMiss(.disk, feature: feature))
            if offset > 0 { record(.note(name: "imageResumed", detail: "\(offset)")) }
        case .downloadFinished(_, let bytes, let duration, let isPrefetch):
            record(.tierHit(.network, feature: feature))
            record(.image(.download, duration: duration, bytes: bytes, isPrefetch: isPrefetch))
        case .revalidated(_, let bytes): record(.revalidated(feature: feature, bytesSaved: bytes))
        case .retried(_, let attempt, let error):
            record(.retry(feature: feature, attempt: attempt, delay: .zero))
            record(.note(name: "imageRetried", detail: error.code.rawValue))
        case .staleUsed(_, let error): record(.note(name: "imageStale", detail: error.code.rawValue))
        case .placeholder(_, let duration): record(.image(.placeholder, duration: duration))
        case .decodeBegan(_, let waited): record(.image(.decodeWait, duration: waited))
        case .delivered(_, _, let duration, let isPrefetch):
            record(.image(.delivered, duration: duration, isPrefetch: isPrefetch))
        case .decoded(_, let width, let height, let duration):
            record(.image(.decode, duration: duration, bytes: width * height * 4))
        case .reused: record(.note(name: "imageReused"))
        case .damaged(_, let origin): record(.note(name: "imageDamaged", detail: origin.rawValue))
        case .cancelled(_, _, let isPrefetch): record(.image(.cancelled, duration: .zero, isPrefetch: isPrefetch))
        case .failed(_, let error):
            // Neither says anything about the picture.
            guard error.code != .cancelled, error.code != .notCached else { break }
            record(.image(.failed, duration: .zero))
            record(.note(name: TelemetryEvent.imageFailure, detail: error.code.rawValue))
        case .evicted(_, let bytes, let reason): record(.eviction(.memory, reason: reason, bytes: bytes))
        case .storageFailed(let error): record(.note(name: "imageStorageFailed", detail: error.description))
        }
    }
}

extension ImagePipeline.Event {
    /// Whether only prefetching wants the picture.
    fileprivate var isPrefetch: Bool {
        switch self {
        case .hit(_, _, let isPrefetch), .downloadStarted(_, _, let isPrefetch),
            .downloadFinished(_, _, _, let isPrefetch),
            .delivered(_, _, _, let isPrefetch), .cancelled(_, _, let isPrefetch):
            isPrefetch
        default: false
        }
    }
}
