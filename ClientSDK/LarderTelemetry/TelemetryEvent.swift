public import LarderEvents
public import LarderTime

/// An event of the SDK.
public struct TelemetryEvent: Sendable, Hashable {
    /// The number among the events of its `Telemetry`, from 1: a gap shows a listener that it missed events.
    public let sequence: UInt64
    /// The monotonic time, to measure durations.
    public let uptime: MonotonicTime
    /// The wall time, for display.
    public let wall: WallTime
    /// The kind of event.
    public let kind: Kind
    /// The session and the version of the app in which it happened.
    package let labels: Labels
    /// The session in which it happened; empty: unknown.
    public var session: String { labels.session }
    /// The version of the app in which it happened; empty: unknown.
    public var appVersion: String { labels.appVersion }

    /// Names the session and the version of the app, to compare versions and to join the events of one session.
    package struct Labels: Sendable, Hashable, Encodable {
        /// The maximum length of a label in bytes; longer ones are truncated, so that they fit into a flight recorder's records.
        package static let bytesMaximum = 24
        /// The identity of the session: random, and not that of a person or a device. Empty: unknown.
        package let session: String
        /// The version of the app: `3.4.1`. Empty: unknown.
        package let appVersion: String

        package static let none = Labels()

        package init(session: String = "", appVersion: String = "") {
            self.session = session.prefix(utf8Maximum: Self.bytesMaximum)
            self.appVersion = appVersion.prefix(utf8Maximum: Self.bytesMaximum)
        }
    }

    package init(sequence: UInt64, uptime: MonotonicTime, wall: WallTime, kind: Kind, labels: Labels = .none) {
        self.labels = labels
        self.sequence = sequence
        self.uptime = uptime
        self.wall = wall
        self.kind = kind
    }

    /// The name of the note with which a run of an app begins.
    package static let beginning = "began"
    /// The name of the note with which a run ends by itself. Without it, the run was killed or has crashed.
    package static let ending = "ended"

    /// The name of the note with the error's code of a picture that failed.
    package static let imageFailure = "imageFailed"

    /// A stage of loading a picture.
    public enum ImageStage: String, Sendable, Hashable, CaseIterable {
        /// The placeholder was decoded.
        case placeholder
        /// The file was downloaded.
        case download
        /// The decode was waiting.
        case decodeWait
        /// The picture was decoded.
        case decode
        /// The picture was delivered; the duration counts from the request.
        case delivered
        /// The request was cancelled.
        case cancelled
        /// The request failed.
        case failed
    }

    /// The kind of an event. Cases may be added: handle unknown ones with `default`.
    ///
    /// `feature` names the part of the app (`feed`, `profile`, `images`), and `name` a note: each is one of few short names in the code. A log
    /// shows them, and hides the details of notes (`Telemetry.log`).
    public enum Kind: Sendable, Hashable {
        /// A hit; `bytes` is the size of the value, or 0 if unknown.
        case tierHit(CacheTier, feature: String, bytes: Int = 0)
        case tierMiss(CacheTier, feature: String)
        /// Entries were removed from a tier; `reason` is the tier's own name for it.
        case eviction(CacheTier, reason: String, count: Int = 1, bytes: Int = 0)
        /// A request joined one in flight.
        case merged(feature: String)
        /// The server confirmed a stored value (304); the bytes were not sent again.
        case revalidated(feature: String, bytesSaved: Int)
        /// A retry; the first one is attempt 2.
        case retry(feature: String, attempt: Int, delay: Duration)
        /// A step of an outbox operation; `depth` is the number of waiting operations.
        case outbox(OutboxStep, depth: Int)
        /// Changes of the server were applied; `remaining` of them are known to be left.
        case sync(feature: String, applied: Int, remaining: Int?)
        /// A stage of loading a picture; `isPrefetch` if only prefetching wants it.
        case image(ImageStage, duration: Duration, bytes: Int = 0, isPrefetch: Bool = false)
        /// The memory pressure level changed.
        case memoryLevel(MemoryLevel, from: MemoryLevel, cause: String)
        /// The memory pressure rose to this level. Before any reaction, caches held `cost` bytes, `requests` were in flight, and `loads` of
        /// pictures waited or ran.
        case memoryWarning(MemoryLevel, cost: Int, requests: Int, loads: Int)
        /// The memory guard cancelled loads and freed bytes.
        case memoryReaction(MemoryLevel, loadsCancelled: Int, bytesFreed: Int)
        /// The level of the network changed.
        case networkLevel(NetworkLevel, from: NetworkLevel, cause: String)
        /// A gate rejected a value.
        case gateRejected(feature: String, reason: String)
        /// An exchange with a server ended; `failure` is the transport error's code if there was no response. `bytesReceived` counts
        /// content as it was sent, and `bytesDecoded` what compressed content became; nil: it was not compressed.
        case request(
            feature: String,
            status: Int?,
            failure: String? = nil,
            duration: Duration,
            bytesReceived: Int,
            bytesSent: Int = 0,
            bytesDecoded: Int? = nil
        )
        /// A screen has content for the first time, this long after its request.
        case firstContent(feature: String, from: CacheTier, after: Duration)
        /// A damaged store was rebuilt with the saved operations; `isOutboxWhole` tells whether no operation was lost.
        case storeRecovered(store: String, kept: Int, isOutboxWhole: Bool)
        /// The value of a feature flag changed.
        case flagChanged(key: String)
        /// Another noteworthy event.
        case note(name: String, detail: String = "")
    }
}
