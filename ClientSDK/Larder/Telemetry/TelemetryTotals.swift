/// What the events of a `Telemetry` add up to: a value, to be looked at, compared, or written as JSON or for Prometheus.
///
/// Bounded: features, reasons and failures beyond a number are counted together under `other`, so that an identifier that was
/// taken for a feature's name cannot fill memory or a metrics database.
public struct TelemetryTotals: Sendable, Hashable {
    /// Reads of one tier.
    public struct Reads: Sendable, Hashable {
        /// Those that found something.
        public internal(set) var hits = 0
        /// Those that did not.
        public internal(set) var misses = 0
        /// The bytes that were found.
        public internal(set) var bytes = 0

        /// The share that found something; 0 when there were none.
        public var hitRate: Double { hits + misses == 0 ? 0 : Double(hits) / Double(hits + misses) }
    }

    /// Entries that left a tier.
    public struct Evictions: Sendable, Hashable {
        /// How many.
        public internal(set) var count = 0
        /// How large they were.
        public internal(set) var bytes = 0
    }

    /// What was done for one feature.
    public struct Feature: Sendable, Hashable {
        /// Reads by tier.
        public internal(set) var reads: [TelemetryEvent.Tier: Reads] = [:]
        /// Requests that were answered by one that was on its way.
        public internal(set) var merged = 0
        /// Replies that said that what is stored is current.
        public internal(set) var revalidations = 0
        /// The bytes that these did not carry again.
        public internal(set) var bytesSaved = 0
        /// Requests that were tried again.
        public internal(set) var retries = 0
        /// Values that a gate did not let through.
        public internal(set) var gatesRefused = 0
        /// How long exchanges took, failed ones among them.
        public internal(set) var requests = LatencyHistogram()
        /// Exchanges without a reply, or with a status from 500 on.
        public internal(set) var requestsFailed = 0
        /// Bytes of content that came.
        public internal(set) var bytesReceived = 0
        /// Bytes of content that went.
        public internal(set) var bytesSent = 0
        /// How long it took until there was something to show.
        public internal(set) var firstContent = LatencyHistogram()
        /// Changes of the server that were applied.
        public internal(set) var changesApplied = 0
        /// Changes that were left when it was last known.
        public internal(set) var changesRemaining: Int?

        mutating func merge(_ other: Feature) {
            for (tier, reads) in other.reads {
                self.reads[tier, default: Reads()].hits += reads.hits
                self.reads[tier, default: Reads()].misses += reads.misses
                self.reads[tier, default: Reads()].bytes += reads.bytes
            }
            merged += other.merged
            revalidations += other.revalidations
            bytesSaved += other.bytesSaved
            retries += other.retries
            gatesRefused += other.gatesRefused
            requests.merge(other.requests)
            requestsFailed += other.requestsFailed
            bytesReceived += other.bytesReceived
            bytesSent += other.bytesSent
            firstContent.merge(other.firstContent)
            changesApplied += other.changesApplied
            if let remaining = other.changesRemaining { changesRemaining = (changesRemaining ?? 0) + remaining }
        }
    }

    /// How many names are kept apart in each place; further ones count as `other`.
    public static let namesMaximum = 64
    /// The name under which those beyond the maximum are counted.
    public static let other = "other"
    /// How long a name may be, in bytes; longer ones are cut.
    static let nameMaximum = 64

    /// How many events there were.
    public internal(set) var events: UInt64 = 0
    /// How many events listeners that are there now have missed.
    public internal(set) var eventsDropped = 0
    /// How many events the flight recorder could not write.
    public internal(set) var recorderFailures = 0
    /// What was done for each feature.
    public internal(set) var features: [String: Feature] = [:]
    /// What left the tiers, by reason.
    public internal(set) var evictions: [TelemetryEvent.Tier: [String: Evictions]] = [:]
    /// How many operations of the outbox wait; nil before it was heard of.
    public internal(set) var outboxDepth: Int?
    /// What became of operations.
    public internal(set) var outbox: [TelemetryEvent.OutboxChange: Int] = [:]
    /// How long was worked on pictures, by stage.
    public internal(set) var images: [TelemetryEvent.ImageStage: LatencyHistogram] = [:]
    /// Replies by status: `2xx`, `4xx`.
    public internal(set) var statuses: [String: Int] = [:]
    /// Exchanges without a reply, by the transport's word for it.
    public internal(set) var failures: [String: Int] = [:]
    /// How short memory was last said to be.
    public internal(set) var memoryLevel: MemoryLevel?
    /// How often that has changed.
    public internal(set) var memoryChanges = 0
    /// What the memory guard has freed, in bytes.
    public internal(set) var memoryFreed = 0
    /// How many loads the memory guard has stopped.
    public internal(set) var loadsCancelled = 0
    /// What the network was last said to be good for.
    public internal(set) var networkLevel: NetworkLevel?
    /// How often that has changed.
    public internal(set) var networkChanges = 0
    /// How many stores were damaged and rebuilt.
    public internal(set) var storesRecovered = 0

    /// Nothing yet.
    public init() {}

    /// What was done for all features together.
    public var all: Feature { features.values.reduce(into: Feature()) { $0.merge($1) } }

    /// Where bytes came from.
    public var bytesBySource: [TelemetryEvent.Tier: Int] {
        let all = all
        var bytes = all.reads.mapValues(\.bytes)
        bytes[.network, default: 0] += all.bytesReceived
        return bytes.filter { $0.value != 0 }
    }

    // MARK: Adding up

    /// Counts an event.
    public mutating func add(_ kind: TelemetryEvent.Kind) {
        events += 1
        switch kind {
        case .tierHit(let tier, let feature, let bytes):
            change(feature) { feature in
                feature.reads[tier, default: Reads()].hits += 1
                feature.reads[tier, default: Reads()].bytes &+= bytes
            }
        case .tierMiss(let tier, let feature): change(feature) { $0.reads[tier, default: Reads()].misses += 1 }
        case .eviction(let tier, let reason, let count, let bytes):
            Self.change(&evictions[tier, default: [:]], reason, Evictions()) { evictions in
                evictions.count &+= count
                evictions.bytes &+= bytes
            }
        case .merged(let feature): change(feature) { $0.merged += 1 }
        case .revalidated(let feature, let bytes):
            change(feature) { feature in
                feature.revalidations += 1
                feature.bytesSaved &+= bytes
            }
        case .retry(let feature, _, _): change(feature) { $0.retries += 1 }
        case .outbox(let operation, let depth):
            outbox[operation, default: 0] += 1
            outboxDepth = depth
        case .sync(let feature, let applied, let remaining):
            change(feature) { feature in
                feature.changesApplied &+= applied
                feature.changesRemaining = remaining ?? feature.changesRemaining
            }
        case .image(let stage, let duration, _): images[stage, default: LatencyHistogram()].record(duration)
        case .memoryLevel(let level, _, _):
            memoryLevel = level
            memoryChanges += 1
        case .memoryReaction(_, let loads, let bytes):
            loadsCancelled &+= loads
            memoryFreed &+= bytes
        case .networkLevel(let level, _, _):
            networkLevel = level
            networkChanges += 1
        case .gateRefused(let feature, _): change(feature) { $0.gatesRefused += 1 }
        case .request(let feature, let status, let failure, let duration, let received, let sent):
            if let status { statuses["\(status / 100)xx", default: 0] += 1 }
            if let failure { Self.change(&failures, failure, 0) { $0 += 1 } }
            change(feature) { feature in
                feature.requests.record(duration)
                if status.map({ $0 >= 500 }) ?? true { feature.requestsFailed += 1 }
                feature.bytesReceived &+= received
                feature.bytesSent &+= sent
            }
        case .firstContent(let feature, _, let duration): change(feature) { $0.firstContent.record(duration) }
        case .storeRecovered: storesRecovered += 1
        case .flagChanged, .note: break
        }
    }

    private mutating func change(_ feature: String, _ body: (inout Feature) -> Void) {
        Self.change(&features, feature, Feature(), body)
    }

    /// Changes the value of a name, or that of all names for which there is no room.
    private static func change<Value>(
        _ values: inout [String: Value],
        _ name: String,
        _ new: @autoclosure () -> Value,
        _ body: (inout Value) -> Void
    ) {
        let name = name.utf8.count > nameMaximum ? name.prefix(utf8Maximum: nameMaximum) : name
        // The last place is for those beyond.
        let key = values.count < namesMaximum - 1 || values[name] != nil ? name : other
        body(&values[key, default: new()])
    }
}
