public import LarderEvents

/// The totals of the events of a `Telemetry`: a value that can be compared and written as JSON.
///
/// Bounded: features, reasons and failures beyond a number are counted together under `other`, so that an identifier used as a
/// feature's name cannot fill memory or a metrics database.
public struct TelemetryTotals: Sendable, Hashable, Encodable {
    /// Reads of one tier.
    public struct Reads: Sendable, Hashable, Encodable {
        /// The number of hits.
        public internal(set) var hits = 0
        /// The number of misses.
        public internal(set) var misses = 0
        /// The bytes of the hits.
        public internal(set) var bytes = 0

        /// The share of hits; 0 without reads.
        public var hitRate: Double { hits + misses == 0 ? 0 : Double(hits) / Double(hits + misses) }
    }

    /// Entries removed from a tier.
    package struct Evictions: Sendable, Hashable, Encodable {
        /// The number of entries.
        package internal(set) var count = 0
        /// Their bytes.
        package internal(set) var bytes = 0
    }

    /// The totals of one feature.
    public struct Feature: Sendable, Hashable, Encodable {
        public internal(set) var reads: [CacheTier: Reads] = [:]
        /// Requests that joined one in flight.
        public internal(set) var merged = 0
        /// Responses that confirmed a stored value.
        public internal(set) var revalidations = 0
        /// The bytes that were not sent again because of that.
        public internal(set) var bytesSaved = 0
        public internal(set) var retries = 0
        /// Values that a gate rejected.
        public internal(set) var gatesRejected = 0
        /// The durations of exchanges, including failed ones.
        public internal(set) var requests = TelemetryTotals.Histogram()
        /// Exchanges without a response, or with a status of 500 or more.
        public internal(set) var requestsFailed = 0
        /// Received content bytes, before decoding.
        public internal(set) var bytesReceived = 0
        /// The received bytes that compressed content had less than decoded.
        public internal(set) var bytesSavedByCompression = 0
        /// Sent content bytes.
        public internal(set) var bytesSent = 0
        /// The times until there was content to show, by the tier that it came from.
        public internal(set) var firstContentByTier: [CacheTier: TelemetryTotals.Histogram] = [:]
        /// The times until there was content to show, from all tiers.
        public var firstContent: TelemetryTotals.Histogram {
            firstContentByTier.values.reduce(into: TelemetryTotals.Histogram()) { $0.merge($1) }
        }
        /// The share of first contents that needed no server; nil without any.
        public var firstContentHitRate: Double? {
            let all = firstContent.count
            guard all > 0 else { return nil }
            return 1 - Double(firstContentByTier[.network]?.count ?? 0) / Double(all)
        }
        /// Applied changes of the server.
        public internal(set) var changesApplied = 0
        /// Changes that were left, as last reported.
        public internal(set) var changesRemaining: Int?

        mutating func merge(_ other: Feature) {
            for (tier, reads) in other.reads {
                self.reads[tier, default: Reads()].hits &+= reads.hits
                self.reads[tier, default: Reads()].misses &+= reads.misses
                self.reads[tier, default: Reads()].bytes &+= reads.bytes
            }
            merged &+= other.merged
            revalidations &+= other.revalidations
            bytesSaved &+= other.bytesSaved
            retries &+= other.retries
            gatesRejected &+= other.gatesRejected
            requests.merge(other.requests)
            requestsFailed &+= other.requestsFailed
            bytesReceived &+= other.bytesReceived
            bytesSent &+= other.bytesSent
            bytesSavedByCompression &+= other.bytesSavedByCompression
            for (tier, times) in other.firstContentByTier {
                firstContentByTier[tier, default: TelemetryTotals.Histogram()].merge(times)
            }
            changesApplied &+= other.changesApplied
            if let remaining = other.changesRemaining { changesRemaining = (changesRemaining ?? 0) &+ remaining }
        }
    }

    /// The exchanges and pictures of one version of the app.
    package struct Version: Sendable, Hashable, Encodable {
        /// The number of exchanges.
        package internal(set) var requests = 0
        /// Exchanges without a response, or with a status of 500 or more.
        package internal(set) var requestsFailed = 0
        /// Failed exchanges by the transport's code, or by status: `503`.
        package internal(set) var failures: [String: Int] = [:]
        /// Pictures that were loaded from disk or network.
        package internal(set) var images = 0
        /// Pictures that could not be loaded or decoded.
        package internal(set) var imagesFailed = 0
        /// Failed pictures by the code of the error: `damaged`.
        package internal(set) var imageFailures: [String: Int] = [:]
    }

    /// What caches held and what was in flight when memory pressure rose, before any reaction.
    package struct MemoryWarnings: Sendable, Hashable, Encodable {
        /// The figures of one warning, or the maximum of each.
        package struct Figures: Sendable, Hashable, Encodable {
            /// The bytes in caches.
            package internal(set) var cost = 0
            /// The number of HTTP requests in flight.
            package internal(set) var requests = 0
            /// The number of waiting or running loads of pictures.
            package internal(set) var loads = 0
        }

        package internal(set) var count = 0
        /// The figures of the last warning.
        package internal(set) var last = Figures()
        package internal(set) var maximum = Figures()
    }

    /// The maximum number of distinct names in each place; further ones count as `other`.
    public static let namesMaximum = 64
    /// The name for all further ones.
    public static let other = "other"
    /// The maximum length of a name in bytes; longer ones are truncated.
    static let nameMaximum = 64

    /// The number of events.
    public internal(set) var events: UInt64 = 0
    /// The number of events that current listeners have missed.
    public internal(set) var eventsDropped = 0
    /// The number of events that the flight recorder could not write.
    public internal(set) var recorderFailures = 0
    /// The totals of each feature.
    public internal(set) var features: [String: Feature] = [:]
    /// Removed entries by tier and reason.
    package internal(set) var evictions: [CacheTier: [String: Evictions]] = [:]
    /// The number of waiting operations in the outbox; nil if unknown.
    public internal(set) var outboxDepth: Int?
    /// Steps of outbox operations.
    public internal(set) var outbox: [OutboxStep: Int] = [:]
    /// The durations of loading pictures that a reader waited for, by stage.
    public internal(set) var images: [TelemetryEvent.ImageStage: TelemetryTotals.Histogram] = [:]
    /// The durations of loading pictures that only prefetching wanted, by stage.
    public internal(set) var prefetchedImages: [TelemetryEvent.ImageStage: TelemetryTotals.Histogram] = [:]
    /// The labels of the last event.
    package internal(set) var labels = TelemetryEvent.Labels.none
    /// The exchanges by the version of the app. Empty without a version.
    package internal(set) var versions: [String: Version] = [:]
    /// The warnings of the memory guard.
    package internal(set) var memoryWarnings = MemoryWarnings()
    /// Responses by status: `2xx`, `4xx`.
    public internal(set) var statuses: [String: Int] = [:]
    /// Exchanges without a response, by the transport's code.
    public internal(set) var failures: [String: Int] = [:]
    /// The last memory pressure level.
    public internal(set) var memoryLevel: MemoryLevel?
    /// The number of changes of the level.
    public internal(set) var memoryChanges = 0
    /// The bytes that the memory guard has freed.
    public internal(set) var memoryFreed = 0
    /// The number of loads that the memory guard has cancelled.
    public internal(set) var loadsCancelled = 0
    /// The last level of the network.
    public internal(set) var networkLevel: NetworkLevel?
    /// The number of changes of the level.
    public internal(set) var networkChanges = 0
    /// The number of damaged stores that were rebuilt.
    public internal(set) var storesRecovered = 0

    /// Creates empty totals.
    public init() {}

    /// The totals of all features together.
    public var all: Feature { features.values.reduce(into: Feature()) { $0.merge($1) } }

    // MARK: Adding up

    /// Counts an event.
    package mutating func add(_ kind: TelemetryEvent.Kind, _ labels: TelemetryEvent.Labels = .none) {
        events += 1
        if labels != .none { self.labels = labels }
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
        case .image(let stage, let duration, _, let isPrefetch):
            count(stage, for: labels)
            let path = isPrefetch ? \Self.prefetchedImages : \Self.images
            self[keyPath: path][stage, default: TelemetryTotals.Histogram()].record(duration)
        case .memoryLevel(let level, _, _):
            memoryLevel = level
            memoryChanges += 1
        case .memoryWarning(_, let cost, let requests, let loads):
            let figures = MemoryWarnings.Figures(cost: cost, requests: requests, loads: loads)
            let old = memoryWarnings.maximum
            memoryWarnings.count += 1
            memoryWarnings.last = figures
            memoryWarnings.maximum = MemoryWarnings.Figures(
                cost: max(old.cost, cost),
                requests: max(old.requests, requests),
                loads: max(old.loads, loads)
            )
        case .memoryReaction(_, let loads, let bytes):
            loadsCancelled &+= loads
            memoryFreed &+= bytes
        case .networkLevel(let level, _, _):
            networkLevel = level
            networkChanges += 1
        case .gateRejected(let feature, _): change(feature) { $0.gatesRejected += 1 }
        case .request(let feature, let status, let failure, let duration, let received, let sent, let decoded):
            if let status { statuses["\(status / 100)xx", default: 0] += 1 }
            if let failure { Self.change(&failures, failure, 0) { $0 += 1 } }
            change(labels) { $0.add(status, failure) }
            change(feature) { feature in
                feature.requests.record(duration)
                if status.map({ $0 >= 500 }) ?? true { feature.requestsFailed += 1 }
                feature.bytesReceived &+= received
                feature.bytesSent &+= sent
                if let decoded { feature.bytesSavedByCompression &+= max(0, decoded &- received) }
            }
        case .firstContent(let feature, let tier, let duration):
            change(feature) { $0.firstContentByTier[tier, default: TelemetryTotals.Histogram()].record(duration) }
        case .storeRecovered: storesRecovered += 1
        case .note(TelemetryEvent.imageFailure, let code):
            change(labels) { Self.change(&$0.imageFailures, code, 0) { $0 += 1 } }
        case .flagChanged, .note: break
        }
    }

    private mutating func count(_ stage: TelemetryEvent.ImageStage, for labels: TelemetryEvent.Labels) {
        switch stage {
        case .delivered: change(labels) { $0.images += 1 }
        case .failed: change(labels) { $0.imagesFailed += 1 }
        default: break
        }
    }

    /// Changes the totals of the version, if there is one.
    private mutating func change(_ labels: TelemetryEvent.Labels, _ body: (inout Version) -> Void) {
        if !labels.appVersion.isEmpty { Self.change(&versions, labels.appVersion, Version(), body) }
    }

    private mutating func change(_ feature: String, _ body: (inout Feature) -> Void) {
        Self.change(&features, feature, Feature(), body)
    }

    /// Changes the value of a name, or of `other` if there is no room.
    fileprivate static func change<Value>(
        _ values: inout [String: Value],
        _ name: String,
        _ new: @autoclosure () -> Value,
        _ body: (inout Value) -> Void
    ) {
        let name = name.utf8.count > nameMaximum ? name.prefix(utf8Maximum: nameMaximum) : name
        // The last place is for `other`.
        let key = values.count < namesMaximum - 1 || values[name] != nil ? name : other
        body(&values[key, default: new()])
    }
}

extension TelemetryTotals.Version {
    /// Counts an exchange.
    fileprivate mutating func add(_ status: Int?, _ failure: String?) {
        requests += 1
        guard status.map({ $0 >= 500 }) ?? true else { return }
        requestsFailed += 1
        let name = failure ?? status.map { "\($0)" } ?? TelemetryTotals.other
        TelemetryTotals.change(&failures, name, 0) { $0 += 1 }
    }
}
