public import LarderTime

/// Something that happened in the SDK.
public struct TelemetryEvent: Sendable, Hashable {
    /// Its number among the events of its `Telemetry`, from 1: a listener sees by a gap that it missed something.
    public let sequence: UInt64
    /// When it happened, to say how long something took.
    public let uptime: MonotonicTime
    /// When it happened, to tell people.
    public let wall: WallTime
    /// What happened.
    public let kind: Kind

    /// An event.
    public init(sequence: UInt64, uptime: MonotonicTime, wall: WallTime, kind: Kind) {
        self.sequence = sequence
        self.uptime = uptime
        self.wall = wall
        self.kind = kind
    }

    /// Where something was looked for, or came from.
    public enum Tier: String, Sendable, Hashable, CaseIterable {
        /// Values in memory.
        case memory
        /// The store on disk.
        case disk
        /// The HTTP cache.
        case http
        /// A server.
        case network
        /// A live channel.
        case push
        /// A local change that the server has yet to confirm.
        case optimistic
    }

    /// What became of an operation of the outbox.
    public enum OutboxChange: String, Sendable, Hashable, CaseIterable {
        /// It is durable.
        case enqueued
        /// It has become one with another that was waiting.
        case coalesced
        /// It was sent.
        case sent
        /// The server has done it.
        case accepted
        /// The server will never do it.
        case rejected
        /// Whether the server has done it is not known yet.
        case inDoubt
        /// Its caller took it back.
        case cancelled
    }

    /// What was done for a picture.
    public enum ImageStage: String, Sendable, Hashable, CaseIterable {
        /// Its placeholder was decoded.
        case placeholder
        /// Its bytes were read from the disk.
        case disk
        /// Its bytes were downloaded.
        case download
        /// It waited for its turn to be decoded.
        case decodeWait
        /// It was decoded.
        case decode
        /// Processors were applied to it.
        case process
        /// It was handed to whoever asked, counted from the question.
        case delivered
        /// Nobody waited for it any more.
        case cancelled
        /// It failed.
        case failed
    }

    /// What happened. Cases may be added: handle those that you do not know by a `default`.
    ///
    /// `feature` names what the SDK did it for (`feed`, `profile`, `images`): a short text, one of few.
    public enum Kind: Sendable, Hashable {
        /// A value was found in a tier; `bytes` is its size where that is known, or 0.
        case tierHit(Tier, feature: String, bytes: Int = 0)
        /// A value was not found in a tier.
        case tierMiss(Tier, feature: String)
        /// Entries left a tier; `reason` is the tier's own word.
        case eviction(Tier, reason: String, count: Int = 1, bytes: Int = 0)
        /// A request was answered by one that was on its way already.
        case merged(feature: String)
        /// The server said that what is stored is current; so many bytes were not sent again.
        case revalidated(feature: String, bytesSaved: Int)
        /// A request is tried again: the first retry is attempt 2.
        case retry(feature: String, attempt: Int, delay: Duration)
        /// An operation of the outbox has moved on; so many wait now.
        case outbox(OutboxChange, depth: Int)
        /// Changes of the server were applied; so many are known to be left.
        case sync(feature: String, applied: Int, remaining: Int?)
        /// Something was done for a picture.
        case image(ImageStage, duration: Duration, bytes: Int = 0)
        /// Memory has become shorter or longer.
        case memoryLevel(MemoryLevel, from: MemoryLevel, cause: String)
        /// What the guard did about it: it stopped so many loads and freed so many bytes.
        case memoryReaction(MemoryLevel, loadsCancelled: Int, bytesFreed: Int)
        /// The network has become better or worse.
        case networkLevel(NetworkLevel, from: NetworkLevel, cause: String)
        /// A gate did not let a value through.
        case gateRefused(feature: String, reason: String)
        /// An exchange with a server is over; `failure` is the transport error's code where there was no reply.
        case request(
            feature: String,
            status: Int?,
            failure: String? = nil,
            duration: Duration,
            bytesReceived: Int,
            bytesSent: Int = 0
        )
        /// A screen has something to show for the first time, this long after it asked.
        case firstContent(feature: String, from: Tier, after: Duration)
        /// A damaged store was rebuilt; so many things were saved, and `isOutboxWhole` says whether no operation was lost.
        case storeRecovered(store: String, kept: Int, isOutboxWhole: Bool)
        /// A feature flag has another value.
        case flagChanged(key: String)
        /// Anything else that is worth remembering.
        case note(name: String, detail: String = "")
    }
}
