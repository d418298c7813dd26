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

        /// What was told last of what is to be done.
        var toldConduct: DegradationPolicy.Conduct?

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
    private let conductChanges = EventHub<DegradationPolicy.Conduct>()
    /// The source is kept with it: a system's source ends when nobody holds it.
    private let attachment = Mutex<(source: any NetworkStatusSource, registration: EventRegistration)?>(nil)

    /// Watches a source from now on, until `close` or its own end.
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
        attachment.withLock { $0 = (source, token) }
        // What changed between the first look and the observation.
        note(source.status)
    }

    // MARK: Asking

    /// What the network is good for now.
    public var level: NetworkLevel { state.withLock { settled($0)?.level } ?? current.level }

    /// What the network is good for now, and why.
    public var current: NetworkState { decide { _, _ in } }

    /// Whether requests cannot succeed now.
    public var isOffline: Bool { level == .offline }

    /// What to do now. While a return is spread it is marked as such: `DegradationPolicy.Conduct.isReturning`.
    public var conduct: DegradationPolicy.Conduct {
        if let known = state.withLock({ settled($0)?.conduct }) { return known }
        let level = current.level
        return state.withLock { Self.conduct($0, level) }
    }

    /// What was decided last, where time alone cannot have changed it: everything else that changes it decides anew.
    private func settled(_ state: State) -> (level: NetworkLevel, conduct: DegradationPolicy.Conduct)? {
        guard let told = state.told, let conduct = state.toldConduct else { return nil }
        if let due = state.nextChange, due <= clock.uptime { return nil }
        return (told.level, conduct)
    }

    /// What to do, as it changes, beginning with what to do now. Who reads slowly gets the newest and not those between.
    public var conducts: EventSequence<DegradationPolicy.Conduct> {
        let present = conduct
        // Under the lock under which changes are posted: none comes between the first and the subscription.
        return state.withLock { conductChanges.subscribe(limit: 1, first: $0.toldConduct ?? present) }
    }

    private static func conduct(_ state: State, _ level: NetworkLevel) -> DegradationPolicy.Conduct {
        var conduct = state.policy[level]
        conduct.isReturning = state.resume.due != nil
        return conduct
    }

    /// The policy; another one holds from now on, except for a return that is already under way.
    public var policy: DegradationPolicy {
        get { state.withLock { $0.policy } }
        set {
            decide { state, _ in
                state.policy = newValue
                state.resume.spread = newValue.resume
            }
        }
    }

    /// Whether a request that is made now would be let through by `admits`. Asking takes nothing from anybody.
    public var mayTry: Bool {
        if level != .offline { return true }
        let now = clock.uptime
        return nextProbe.map { $0 <= now } ?? false
    }

    /// When a request may find out whether the network is back; nil unless it is offline by experience alone.
    public var nextProbe: MonotonicTime? {
        state.withLock { state in
            guard level(of: state).0 == .offline, isExperience(state) else { return nil }
            return state.estimator.nextProbe
        }
    }

    private func isExperience(_ state: State) -> Bool { state.override == nil && isConnected(state.status) }

    /// Whether to send a request that nobody asked for by hand.
    ///
    /// Where the system says that there is no network, never. Where only experience says so, one is let through from time to
    /// time: otherwise nothing would ever find out that the server is back.
    public func admits() -> Bool {
        var admitted = true
        decide { state, now in
            let level = self.level(of: state).0
            if level == .offline {
                admitted = self.isExperience(state) && state.estimator.takeProbe(at: now)
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
            _ = await stirs.next(until: state.withLock { $0.nextChange }, by: sleeper)
            decide(stirs: false) { _, _ in }
        }
    }

    /// While the network counts as offline by experience alone, has a request find out whether it is back, at the times that
    /// `admits` would let one through: otherwise a screen that only waits would wait for ever. Returns when its task is cancelled.
    ///
    /// - Parameter request: sends something small, and notes what came of it, as a `MonitoredTransport` does.
    public func probe(sleeper: any Sleeper = SystemSleeper(), _ request: @Sendable () async -> Void) async {
        let stirs = stirs.subscribe(limit: 1)
        while !Task.isCancelled {
            let due = nextProbe
            _ = await stirs.next(until: due, by: sleeper)
            guard !Task.isCancelled, let due, due <= clock.uptime, nextProbe == due else { continue }
            await request()
            // One that asked nobody and noted nothing has had its turn.
            decide { state, now in
                if state.estimator.nextProbe == due { _ = state.estimator.takeProbe(at: now) }
            }
        }
    }

    /// Watches its source no more, and lets go of it: what was known stays, and requests go on telling. For ever.
    public func close() { _ = attachment.withLock { $0.take() } }

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
            var conducted: [EventWakeup<DegradationPolicy.Conduct>] = []
            var stirred: [EventWakeup<Void>] = []
        }
        let outcome = state.withLock { state -> Outcome in
            let now = clock.uptime
            let before = (state.nextChange, state.estimator.nextProbe)
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
            let conduct = Self.conduct(state, level)
            if conduct != state.toldConduct {
                state.toldConduct = conduct
                outcome.conducted = conductChanges.post(conduct)
            }
            if isStirring, before != (state.nextChange, state.estimator.nextProbe) { outcome.stirred = stirs.post(()) }
            return outcome
        }
        for wakeup in outcome.wakeups { wakeup.resume() }
        for wakeup in outcome.resumed { wakeup.resume() }
        for wakeup in outcome.conducted { wakeup.resume() }
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
