/// How a read goes about it: what of the cache may be shown, when the network is asked, and how long it is waited for.
///
/// The named policies are points on this grid; any other point is as good. What each does, as `snapshots` shows it (value, then
/// network activity; «miss» is a first snapshot without a value):
///
/// | policy | nothing cached | fresh | stale | stale, and the network fails |
/// | --- | --- | --- | --- | --- |
/// | `cacheFirst` | miss, new | cached | miss, new | miss, cached with error |
/// | `staleWhileRevalidate` | miss, new | cached | cached, new | cached, cached with error |
/// | `networkFirst(timeout)` | miss, new | miss, new | miss, new; after the timeout cached, then new | miss, cached with error |
/// | `cacheAndLoad` | miss, new | cached, new | cached, new | cached, cached with error |
/// | `cacheOnly` | miss | cached | cached | – |
/// | `networkOnly` | miss, new | miss, new | miss, new | miss, miss with error |
///
/// A one-shot read gives the first of these that has a value and that the policy does not wait beyond; with
/// `staleWhileRevalidate` and `cacheAndLoad` the network is asked in the background.
public struct ReadPolicy: Sendable, Hashable {
    /// What may be shown before the network has answered.
    public enum Local: Sendable, Hashable {
        /// Nothing.
        case never
        /// What is fresh.
        case fresh
        /// Whatever there is, if it was confirmed within the time; nil: however old it is.
        case any(within: Duration?)
    }

    /// When the network is asked.
    public enum Remote: Sendable, Hashable {
        /// Not at all.
        case never
        /// Unless there is something fresh and complete.
        case ifStale
        /// In any case.
        case always
    }

    /// What may be shown before the network has answered.
    public var local: Local
    /// When the network is asked.
    public var remote: Remote
    /// What may be shown, with the error, when the network has failed.
    public var fallback: Local
    /// How long to wait for the network before `fallback` is shown all the same; its answer still arrives. Nil: until it has
    /// answered or failed.
    public var patience: Duration?

    /// A policy by its coordinates.
    public init(_ local: Local, _ remote: Remote, fallback: Local = .any(within: nil), patience: Duration? = nil) {
        self.local = local
        self.remote = remote
        self.fallback = fallback
        self.patience = patience
    }

    /// What is fresh, else the network, else what is stale.
    public static let cacheFirst = ReadPolicy(.fresh, .ifStale)
    /// What is stored, and nothing else.
    public static let cacheOnly = ReadPolicy(.any(within: nil), .never)
    /// The network, and nothing else: caches on the way must validate what they have. What it says is stored.
    public static let networkOnly = ReadPolicy(.never, .always, fallback: .never)
    /// What there is at once; if that was stale, the network behind it.
    public static let staleWhileRevalidate = staleWhileRevalidate(upTo: nil)
    /// What there is at once, and in any case the network behind it: show now, update later.
    public static let cacheAndLoad = ReadPolicy(.any(within: nil), .always)

    /// What was confirmed within the time at once; if it was stale, the network behind it.
    public static func staleWhileRevalidate(upTo limit: Duration?) -> ReadPolicy {
        ReadPolicy(.any(within: limit), .ifStale)
    }

    /// Whether nothing but the network's answer is shown: then no cache on the way may give it.
    var wantsOriginOnly: Bool { local == .never && remote == .always && fallback == .never }

    /// The network; where it fails, or takes longer than the timeout, what is stored. A late answer still reaches observers.
    public static func networkFirst(timeout: Duration?) -> ReadPolicy {
        ReadPolicy(.never, .always, patience: timeout)
    }

    /// The same as `cacheOnly`.
    public static let cacheNoLoad = cacheOnly
    /// The same as `networkOnly`.
    public static let noCacheDoLoad = networkOnly
    /// The same as `cacheFirst`.
    public static let cacheElseLoad = cacheFirst
}

/// The settings of one read or observer: its own, and those of the resource that it passes.
struct ReadOptions: Sendable {
    /// How the read proceeds.
    var policy: ReadPolicy
    /// When the reader calls a value fresh.
    var rule: FreshnessRule
    /// How much a value must hold for that.
    var demands: DiskEntity.Completeness
    /// How long the reader waits for a request at most; nil: without a limit.
    var timeout: Duration?
    /// The sensitive fields that the reader uses.
    var fields: Set<String>

    /// - Parameters:
    ///   - policy: the policy that the reader names; nil: the resource's, except that a rule that demands validation shows nothing stale.
    ///   - rule: what the resource's freshness means.
    init<Value>(_ resource: Resource<Value>, _ policy: ReadPolicy?, _ rule: FreshnessRule, fields: Set<String>) {
        self.policy =
            policy
            ?? (rule.level == .validated ? ReadPolicy(.fresh, .ifStale, fallback: .never) : resource.policy)
        self.rule = rule
        demands = resource.demands.step
        timeout = resource.timeout
        self.fields = fields
    }

    /// How often the reader wants the value refreshed while it observes; nil: never without a reason.
    var bound: Duration? {
        guard case .boundedStaleness(let bound) = rule.level, policy.remote != .never else { return nil }
        return bound
    }
}
