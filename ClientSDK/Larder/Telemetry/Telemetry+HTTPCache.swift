package import LarderHTTPCache
import LarderTelemetry

extension Telemetry {
    /// Records an event of an HTTP cache, for `HTTPCache.Configuration.onEvent`.
    ///
    /// - Parameter feature: the feature that the request belongs to; one of a small set of names.
    package func record(_ event: HTTPCache.Event, feature: String = "http") {
        switch event {
        case .hit(let bytes, _): record(.tierHit(.http, feature: feature, bytes: bytes))
        case .miss: record(.tierMiss(.http, feature: feature))
        case .revalidated(let bytes): record(.revalidated(feature: feature, bytesSaved: bytes))
        case .merged: record(.merged(feature: feature))
        }
    }
}
