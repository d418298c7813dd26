import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// What a world's control plane consists of: what is to go wrong in it, and what happened. Safe from any thread.
package final class WorldControl: Sendable {
    let faults: FaultSet
    let gates = GateSet()
    let journal: Journal
    let roster = Roster()
    let lines = Lines()
    let torture = ChangeTorture()
    let phantoms = PhantomSet()
    let tape = Tape()
    private let settings = Mutex(Settings())
    private let isPlain = Atomic<Bool>(true)
    private let commitObservers = Mutex<[UInt64: @Sendable (Int64) -> Void]>([:])
    private let lastObserver = Atomic<UInt64>(0)

    /// What can be set besides.
    struct Settings: Sendable, Hashable {
        /// How far each device's dates are off; `*` for all devices.
        var skews: [String: Duration] = [:]
        var dialect = Dialect()
        /// The seed of schema drift; nil for none.
        var drift: SchemaDrift?
    }

    init(seed: UInt64, journalCapacity: Int, headFaults: HeadFaultCount) {
        faults = FaultSet(seed: seed, allHeads: headFaults)
        journal = Journal(capacity: journalCapacity)
    }

    /// Whether nothing but faults is set that could touch an exchange.
    var isQuiet: Bool {
        gates.isEmpty && phantoms.isEmpty && isPlain.load(ordering: .relaxed) && !tape.isRecording
    }

    var current: Settings { settings.withLock { $0 } }

    func change(_ body: (inout Settings) -> Void) {
        settings.withLock { settings in
            body(&settings)
            isPlain.store(settings.skews.isEmpty && settings.drift == nil, ordering: .relaxed)
        }
    }

    func skew(of device: String) -> Duration {
        let skews = current.skews
        return skews[device] ?? skews["*"] ?? .zero
    }

    /// Takes everything back that was set. The journal stays.
    func reset() {
        faults.removeAll()
        gates.removeAll()
        phantoms.removeAll()
        torture.removeAll()
        tape.stop()
        change { $0 = Settings() }
    }

    // MARK: Commits

    /// Called while the store is held: observers must only hand the number on.
    func committed(_ number: Int64, _ changes: [ChangeRow]) {
        let observers = commitObservers.withLock { Array($0.values) }
        for observer in observers { observer(number) }
    }

    func observeCommits(_ body: @escaping @Sendable (Int64) -> Void) -> UInt64 {
        let id = lastObserver.add(1, ordering: .relaxed).newValue
        commitObservers.withLock { $0[id] = body }
        return id
    }

    func stopObservingCommits(_ id: UInt64) { _ = commitObservers.withLock { $0.removeValue(forKey: id) } }
}

extension World {
    /// Whether nothing is set that could touch an exchange on that path.
    func goesStraight(_ path: ArraySlice<UInt8>) -> Bool {
        control.isQuiet && clock.followsSystem && !control.faults.concern(path)
    }
}

/// How a world speaks where real servers differ.
public struct Dialect: Sendable, Hashable {
    /// What becomes of a second request with an idempotency key.
    public enum Idempotency: String, Sendable, Hashable, CaseIterable {
        /// The draft of the IETF: 409 while the first runs, then its result.
        case ietf
        /// As `ietf`, and results of server errors are kept too.
        case stripeV1 = "stripe-v1"
        /// A success is never repeated; work that failed is done anew.
        case stripeV2 = "stripe-v2"
        /// The second waits for the first.
        case blocking
    }

    /// How limits are reported.
    public enum RateLimitFields: String, Sendable, Hashable, CaseIterable {
        /// `RateLimit` and `RateLimit-Policy`.
        case ietf
        /// `RateLimit-Limit`, `-Remaining` and `-Reset` in seconds.
        case triplet
        /// `X-RateLimit-*` with the time of the reset.
        case github
    }

    /// What a change token that is too old is answered with.
    public enum Resync: String, Sendable, Hashable, CaseIterable {
        /// Forget everything and read anew.
        case wipe
        /// Read anew and keep what is not in it only if it is newer.
        case applyDifferences = "apply-differences"
        /// Read anew and send up what the server does not have.
        case uploadDifferences = "upload-differences"
    }

    /// What becomes of a second request with a key.
    public var idempotency = Idempotency.ietf
    /// How limits are reported.
    public var rateLimit = RateLimitFields.ietf
    /// What a resync is told to be.
    public var resync = Resync.wipe

    /// The dialect that the API describes.
    public init() {}
}
