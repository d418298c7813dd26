import LarderStorage

/// How a value is read: which cached values may be shown, when the network is asked, and how long a read waits for it.
///
/// The named policies are combinations of these settings. What `snapshots` shows for each of them ("miss" is a first snapshot without a
/// value):
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
/// A one-shot read returns the first of these snapshots that has a value; with
/// `staleWhileRevalidate` and `cacheAndLoad` the network is asked in the background.
public struct ReadPolicy: Sendable, Hashable {
    /// What may be shown before the network has answered.
    package enum Local: Sendable, Hashable {
        /// Nothing.
        case never
        /// A fresh value.
        case fresh
        /// Any value, of any age.
        case any
    }

    /// When the network is asked.
    package enum Remote: Sendable, Hashable {
        case never
        /// If there is no fresh and complete value.
        case ifStale
        case always
    }

    /// What may be shown before the network has answered.
    package var local: Local
    /// When the network is asked.
    package var remote: Remote
    /// What may be shown, together with the error, when the network has failed.
    package var fallback: Local
    /// How long to wait for the network before `fallback` is shown; the answer is still stored and shown later. Nil: until the network
    /// has answered or failed.
    package var fallbackDelay: Duration?

    /// Creates a policy from its settings.
    package init(_ local: Local, _ remote: Remote, fallback: Local = .any, fallbackDelay: Duration? = nil) {
        self.local = local
        self.remote = remote
        self.fallback = fallback
        self.fallbackDelay = fallbackDelay
    }

    /// A fresh value, otherwise the network, otherwise a stale value.
    public static let cacheFirst = ReadPolicy(.fresh, .ifStale)
    /// The stored value only.
    public static let cacheOnly = ReadPolicy(.any, .never)
    /// The network only: caches on the way must revalidate. The answer is stored.
    public static let networkOnly = ReadPolicy(.never, .always, fallback: .never)
    /// The stored value at once; if it is stale, the network afterwards.
    public static let staleWhileRevalidate = ReadPolicy(.any, .ifStale)
    /// The stored value at once, and always the network afterwards.
    public static let cacheAndLoad = ReadPolicy(.any, .always)

    /// `cacheOnly`, under the name that request caches often use.
    public static let cacheNoLoad = cacheOnly
    /// `networkOnly`, under the name that request caches often use.
    public static let noCacheDoLoad = networkOnly
    /// `cacheFirst`, under the name that request caches often use.
    public static let cacheElseLoad = cacheFirst

    /// The name of the policy; that of the closest named one if its settings are its own.
    package var name: String {
        switch (local, remote) {
        case (_, .never): "cacheOnly"
        case (.never, .always): fallback == .never ? "networkOnly" : "networkFirst"
        case (_, .always): "cacheAndLoad"
        case (.any, .ifStale): "staleWhileRevalidate"
        case (_, .ifStale): "cacheFirst"
        }
    }

    /// Whether only the answer of the network is shown: then caches on the way must revalidate.
    var wantsOriginOnly: Bool { local == .never && remote == .always && fallback == .never }

    /// The network; if it fails or takes longer than the timeout, the stored value. A late answer still reaches observers.
    public static func networkFirst(timeout: Duration?) -> ReadPolicy {
        ReadPolicy(.never, .always, fallbackDelay: timeout)
    }
}
