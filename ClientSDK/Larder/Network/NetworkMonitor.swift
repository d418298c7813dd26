public import LarderTime
import Synchronization

/// Knows what the network is good for, from what the system says and from what requests experience.
///
/// A level set by hand comes first, then the system's word that there is no network, then experience. Reading is cheap and safe
/// from any thread. Levels that change by time alone are decided when somebody looks, and while `run(sleeper:)` runs.
public final class NetworkMonitor: Sendable {
    /// How a monitor decides.
    public struct Configuration: Sendable {
        /// Where levels begin and end.
        public var thresholds = NetworkQualityEstimator.Thresholds()
        /// What is done at each level.
        public var policy = DegradationPolicy.standard
        /// Whether no usable interface means offline. False for servers on this machine, which need none.
        public var heedsInterfaces = true
        /// Whether a network that is to be spared counts as constrained.
        public var sparesMetered = true
        /// The client's own random number, the same at each start: decides when it returns among others.
        public var seed: UInt64

        /// - Parameter seed: random once, then stored.
        public init(seed: UInt64 = .random(in: 0 ... .max)) { self.seed = seed }
    }

    private struct State {
        var status: NetworkStatus
        var estimator: NetworkQualityEstimator
        var resume: ResumeSchedule
        var policy: DegradationPolicy
        var override: NetworkLevel?
        var told: NetworkState?

        /// When time alone may change something. While offline it is for a request to find out: time changes nothing.
        var nextChange: MonotonicTime? {
            let quality = estimator.level == .offline ? nil : estimator.nextChange
            return [resume.due, quality].compactMap(\.self).min()
        }
    }

    private let state: Mutex<State>
    private let configuration: Configuration
    private let clock: any MonotonicClock
    /// Changes of the level on their way to telemetry: recorded in order, and under no lock.
    private let records = OrderedObservers<TelemetryEvent.Kind>()
    private let recording: EventRegistration
    private let changes = EventHub<NetworkState>()
    private let resumptions = EventHub<MonotonicTime>()
    /// Wakes `run` when something was decided that may bring the next point in time nearer.
    private let stirs = EventHub<Void>()
    private let registration = Mutex<EventRegistration?>(nil)

    /// Watches a source from now on.
    ///
    /// - Parameters:
    ///   - source: what the system says; `SystemNetworkSource.make()` gives the platform's.
    ///   - clock: what samples are aged by.
    public init(
        source: any NetworkStatusSource,
        configuration: Configuration = Configuration(),
        clock: any MonotonicClock = SystemMonotonicClock(),
        telemetry: Telemetry = .off
    ) {
        self.configuration = configuration
        self.clock = clock
        recording = records.add { kind in telemetry.record(kind) }
        state = Mutex(
            State(
                status: source.status,
                estimator: NetworkQualityEstimator(configuration.thresholds),
                resume: ResumeSchedule(configuration.policy.resume, seed: configuration.seed),
                policy: configuration.policy
            )
        )
        decide { _, _ in }
        let token = source.observe { [weak self] status in self?.note(status) }
        registration.withLock { $0 = token }
        // What changed between the first look and the observation.
        note(source.status)
    }

    // MARK: Asking

    /// What the network is good for now.
    public var level: NetworkLevel { current.level }

    /// What the network is good for now, and why.
    public var current: NetworkState { decide { _, _ in } }

    /// Whether requests cannot succeed now.
    public var isOffline: Bool { level == .offline }

    /// What to do now.
    public var conduct: DegradationPolicy.Conduct {
        let level = level
        return state.withLock { $0.policy[level] }
    }

    /// The policy; another one holds from now on, except for a return that is already under way.
    public var policy: DegradationPolicy {
        get { state.withLock { $0.policy } }
        set {
            state.withLock { state in
                state.policy = newValue
                state.resume.spread = newValue.resume
            }
        }
    }

    /// Whether to send a request that nobody asked for by hand.
    ///
    /// Where the system says that there is no network, never. Where only experience says so, one is let through from time to
    /// time: otherwise nothing would ever find out that the server is back.
    public func admits() -> Bool {
        var admitted = true
        decide { state, now in
            let level = self.level(of: state).0
            if level == .offline {
                let isExperience = state.override == nil && self.isConnected(state.status)
                admitted = isExperience && state.estimator.takeProbe(at: now)
            }
        }
        return admitted
    }

    /// States as they change, beginning with the present one. Who reads slowly gets the newest and not those between.
    public var states: EventSequence<NetworkState> {
        let present = current
        // Under the lock under which changes are posted: none comes between the first state and the subscription.
        return state.withLock { changes.subscribe(limit: 1, first: $0.told ?? present) }
    }

    /// The points in time at which to take up again what was given up when the network went: jittered, see `ResumeSpread`.
    ///
    /// They come while `run(sleeper:)` runs, or when somebody looks at the monitor.
    public var resumes: EventSequence<MonotonicTime> { resumptions.subscribe(limit: 1) }

    // MARK: Telling

    /// Notes what an exchange has experienced.
    public func note(_ sample: NetworkSample) { decide { state, now in state.estimator.add(sample, at: now) } }

    /// Notes what the system says. What requests experienced in another network does not count in this one.
    public func note(_ status: NetworkStatus) {
        decide { state, _ in
            let old = state.status
            state.status = status
            let isOther = Self.ways(old) != Self.ways(status) || old.isConnected != status.isConnected
            if isOther, status.isConnected { state.estimator.reset() }
        }
    }

    /// Sets the level by hand; nil lets the monitor decide again.
    public func setOverride(_ level: NetworkLevel?) { decide { state, _ in state.override = level } }

    /// Decides at the right time what time alone changes; returns when its task is cancelled.
    public func run(sleeper: any Sleeper = SystemSleeper()) async {
        let stirs = stirs.subscribe(limit: 1)
        while !Task.isCancelled {
            let next = state.withLock { $0.nextChange }
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    var iterator = stirs.makeAsyncIterator()
                    _ = await iterator.next()
                }
                if let next {
                    // Cancelled is as good as slept: the loop looks again.
                    group.addTask { do { try await sleeper.sleep(until: next) } catch {} }
                }
                await group.next()
                group.cancelAll()
            }
            decide(stirs: false) { _, _ in }
        }
    }

    // MARK: Deciding

    /// - Parameter isStirring: whether `run` is woken when it has to wait for another time; not by itself.
    @discardableResult
    private func decide(
        stirs isStirring: Bool = true,
        _ change: (inout State, MonotonicTime) -> Void
    ) -> NetworkState {
        struct Outcome {
            var state: NetworkState
            var wakeups: [EventWakeup<NetworkState>] = []
            var resumed: [EventWakeup<MonotonicTime>] = []
            var stirred: [EventWakeup<Void>] = []
        }
        let outcome = state.withLock { state -> Outcome in
            let now = clock.uptime
            let before = state.nextChange
            change(&state, now)
            state.estimator.look(at: now)
            let (level, cause) = level(of: state)
            let new = NetworkState(level: level, cause: cause, status: state.status, quality: state.estimator.quality)
            var outcome = Outcome(state: new)
            if let old = state.told, old.level != level {
                records.enqueue(.networkLevel(level, from: old.level, cause: cause.rawValue))
            }
            state.resume.note(level, at: now)
            if level != state.told?.level || cause != state.told?.cause || new.status != state.told?.status {
                state.told = new
                outcome.wakeups = changes.post(new)
            }
            if state.resume.take(at: now) { outcome.resumed = resumptions.post(now) }
            if isStirring, before != state.nextChange { outcome.stirred = stirs.post(()) }
            return outcome
        }
        for wakeup in outcome.wakeups { wakeup.resume() }
        for wakeup in outcome.resumed { wakeup.resume() }
        for wakeup in outcome.stirred { wakeup.resume() }
        records.drain()
        return outcome.state
    }

    private func level(of state: State) -> (NetworkLevel, NetworkState.Cause) {
        if let level = state.override { return (level, .override) }
        if !isConnected(state.status) { return (.offline, .noInterface) }
        let level = state.estimator.level
        if level == .good, state.status.isMetered, configuration.sparesMetered { return (.constrained, .metered) }
        return (level, level == .good ? .nothing : .experience)
    }

    private func isConnected(_ status: NetworkStatus) -> Bool {
        status.isConnected || !configuration.heedsInterfaces
    }

    /// By what requests can leave: where that changes, the network is another.
    private static func ways(_ status: NetworkStatus) -> [NetworkInterface] {
        // Apple's systems name the interfaces of a path and not their addresses.
        let knowsAddresses = status.interfaces.contains { !$0.addresses.isEmpty }
        return knowsAddresses ? status.interfaces.filter(\.isUsable) : status.interfaces
    }
}
