public import LarderEvents
public import LarderTime
import Synchronization

/// Decides the level of the network from the system's state and from measurements of requests.
///
/// An override comes first, then the system's report of no network, then measurements. Reading is cheap and safe from any thread.
/// Changes by time alone are decided on the next read, and while `run(sleeper:)` runs.
///
/// ```swift
/// if let network = client.network {
///     print(network.level, network.isOffline)
///     network.setOverride(.offline)                           // as a switch in the app does; nil ends it
///     for await behavior in network.behaviors { print(behavior.prefetchFactor) }
/// }
/// ```
public final class NetworkMonitor: Sendable {
    /// The settings of a monitor.
    package struct Configuration: Sendable {
        /// The behavior at each level.
        package var policy = DegradationPolicy.standard
        /// Whether the network is offline without a usable interface. False for servers on this machine.
        package var requiresInterface = true
        /// The bytes that may be received in a month; when they are spent the network counts as metered. Nil: no limit.
        package var dataBudget: DataBudget?
        /// A random number: it decides the client's place among those that return.
        package var seed: UInt64

        package init(seed: UInt64 = .random(in: 0 ... .max)) { self.seed = seed }
    }

    /// A change of the level.
    package struct Event: Sendable, Hashable {
        package let level: NetworkLevel
        /// The level before.
        package let previous: NetworkLevel
        /// The cause of the new level.
        package let cause: State.Cause
    }

    private struct Core {
        var status: NetworkStatus
        var estimator: NetworkQualityEstimator
        var resume: ResumeSchedule
        var policy: DegradationPolicy
        var override: NetworkLevel?
        /// The setting of the app; nil: as the system reports.
        var isMetered: Bool?
        var published: State?

        /// The last behavior that was posted.
        var publishedBehavior: NetworkBehavior?

        /// When time alone may change something. While offline, only a request can find out.
        var nextChange: MonotonicTime? {
            [resume.due, estimator.nextChange].compactMap(\.self).min()
        }
    }

    private let state: Mutex<Core>
    let configuration: Configuration
    let inFlight = Atomic<Int>(0)
    private let clock: any MonotonicClock
    /// Level changes to be passed to `onEvent`: in order, while no lock is held.
    private let records = OrderedObservers<Event>()
    private let recording: EventRegistration
    private let changes = EventHub<State>()
    /// Wakes `run` and `probe` when a decision may have moved their next point in time.
    private let wakeUps = EventHub<Void>()
    private let behaviorChanges = EventHub<NetworkBehavior>()
    /// Holds the source too: a system's source ends when it is released.
    private let attachment = Mutex<(source: any Source, registration: EventRegistration)?>(nil)

    /// Observes a source until `close` or its own end.
    ///
    /// - Parameters:
    ///   - source: reports the system's state.
    ///   - configuration: the policy, the data budget and whether an interface is required.
    ///   - clock: used for the age of samples.
    ///   - onEvent: called for each event.
    package init(
        source: any Source,
        configuration: Configuration = Configuration(),
        clock: any MonotonicClock = SystemMonotonicClock(),
        onEvent: @escaping @Sendable (Event) -> Void = { _ in }
    ) {
        self.configuration = configuration
        self.clock = clock
        recording = records.add(onEvent)
        state = Mutex(
            Core(
                status: source.status,
                estimator: NetworkQualityEstimator(seed: configuration.seed),
                resume: ResumeSchedule(configuration.policy.resumeWindow, seed: configuration.seed),
                policy: configuration.policy
            )
        )
        decide { _, _ in }
        let token = source.observe { [weak self] status in self?.note(status) }
        attachment.withLock { $0 = (source, token) }
        // Covers a change between the first read and the observation.
        note(source.status)
    }

    /// Observes the system's network until `close`: for several clients that share a monitor (`APIClient.Services.network`).
    public convenience init() { self.init(source: Self.systemSource().source) }

    // MARK: Asking

    /// The level now.
    public var level: NetworkLevel { state.withLock { settled($0)?.level } ?? current.level }

    /// The number of requests that `MonitoredTransport`s with this monitor have sent and whose content has not ended.
    public var requestsInFlight: Int { inFlight.load(ordering: .relaxed) }

    /// The level now and its cause.
    package var current: State { decide { _, _ in } }

    /// Whether the level is `.offline`.
    public var isOffline: Bool { level == .offline }

    /// The behavior now. While a return is delayed, it is marked by `NetworkBehavior.isReturning`.
    public var behavior: NetworkBehavior {
        if let known = state.withLock({ settled($0)?.behavior }) { return known }
        let level = current.level
        return state.withLock { self.behavior($0, level) }
    }

    /// The last decision if time alone cannot have changed it; all other changes decide anew.
    private func settled(_ state: Core) -> (level: NetworkLevel, behavior: NetworkBehavior)? {
        // The month of a spent budget ends by the wall clock.
        if configuration.dataBudget != nil, state.published?.cause == .metered { return nil }
        guard let published = state.published, let behavior = state.publishedBehavior else { return nil }
        if let due = state.nextChange, due <= clock.uptime { return nil }
        return (published.level, behavior)
    }

    /// The behavior as it changes, beginning with the current one. A slow reader gets only the newest.
    public var behaviors: EventSequence<NetworkBehavior> {
        let present = behavior
        // Under the lock under which changes are posted, so that none is missed between the first value and the subscription.
        return state.withLock { behaviorChanges.subscribe(limit: 1, first: $0.publishedBehavior ?? present) }
    }

    private func behavior(_ state: Core, _ level: NetworkLevel) -> NetworkBehavior {
        var behavior = state.policy[level]
        behavior.isOfflineByExperience = level == .offline && isExperience(state)
        behavior.isReturning = state.resume.due != nil
        return behavior
    }

    /// The policy. A new one applies at once, except to a return that is under way.
    public var policy: DegradationPolicy {
        get { state.withLock { $0.policy } }
        set {
            decide { state, _ in
                state.policy = newValue
                state.resume.window = newValue.resumeWindow
            }
        }
    }

    /// Whether `admits` would allow a request of the current task now. Asking does not use up a probe.
    package var mayTry: Bool {
        if level != .offline || behavior.isOfflineByExperience && RequestReason.isUserWaiting { return true }
        let now = clock.uptime
        return nextProbe.map { $0 <= now } ?? false
    }

    /// When a probe is due; nil unless the network is offline because of measurements alone.
    package var nextProbe: MonotonicTime? { state.withLock { nextProbe($0) } }

    private func nextProbe(_ state: Core) -> MonotonicTime? {
        guard level(of: state).0 == .offline, isExperience(state) else { return nil }
        return state.estimator.nextProbe
    }

    private func isExperience(_ state: Core) -> Bool { state.override == nil && isConnected(state.status) }

    /// Whether to send a request of the current task.
    ///
    /// Never if the system reports no network. If only measurements say so, a person's refresh is allowed, and one automatic request
    /// from time to time, because otherwise nothing would find out that the server is back.
    package func admits() -> Bool {
        var admitted = true
        decide { state, now in
            let level = self.level(of: state).0
            if level == .offline {
                // A person's refresh does not use up a probe: its failure must not delay the next one.
                admitted =
                    self.isExperience(state) && (RequestReason.isUserWaiting || state.estimator.takeProbe(at: now))
            }
        }
        return admitted
    }

    /// The level as it changes, beginning with the current one: for a sign on the screen. A slow reader gets only the newest.
    public var levels: some AsyncSequence<NetworkLevel, Never> & Sendable { states.map { $0.level } }

    /// The states as they change, beginning with the current one. A slow reader gets only the newest.
    package var states: EventSequence<State> {
        let present = current
        // Under the lock under which changes are posted, so that none is missed between the first value and the subscription.
        return state.withLock { changes.subscribe(limit: 1, first: $0.published ?? present) }
    }

    // MARK: Telling

    /// Adds the measurement of an exchange.
    package func note(_ sample: NetworkSample) { decide { state, now in state.estimator.add(sample, at: now) } }

    /// Notes the system's state. Measurements in another network are discarded.
    package func note(_ status: NetworkStatus) {
        decide { state, _ in
            let old = state.status
            state.status = status
            let isOther = Self.ways(old) != Self.ways(status) || old.isConnected != status.isConnected
            if isOther, status.isConnected { state.estimator.reset() }
        }
    }

    /// Sets the level; nil lets the monitor decide again.
    public func setOverride(_ level: NetworkLevel?) { decide { state, _ in state.override = level } }

    /// Sets whether the network is metered, from a setting of the app or from a system that knows; nil: as the source reports.
    public func setMetered(_ isMetered: Bool?) { decide { state, _ in state.isMetered = isMetered } }

    /// Counts the bytes of an exchange.
    func spent(_ bytes: Int) {
        guard let budget = configuration.dataBudget, budget.spend(bytes) else { return }
        decide { _, _ in }
    }

    /// Takes timed decisions at their time; returns when its task is cancelled.
    public func run(sleeper: any MonotonicClock = SystemMonotonicClock()) async {
        let wakeUps = wakeUps.subscribe(limit: 1)
        while !Task.isCancelled {
            _ = await wakeUps.next(until: state.withLock { $0.nextChange }, by: sleeper)
            decide(wakeUps: false) { _, _ in }
        }
    }

    /// Sends a probe at the times that `admits` would allow one, while the network is offline because of measurements alone:
    /// otherwise a screen that only waits would wait for ever. Returns when its task is cancelled.
    ///
    /// - Parameters:
    ///   - sleeper: used for the waits between probes.
    ///   - request: sends a small request and reports its result, as a `MonitoredTransport` does.
    package func probe(sleeper: any MonotonicClock = SystemMonotonicClock(), _ request: @Sendable () async -> Void)
        async
    {
        let wakeUps = wakeUps.subscribe(limit: 1)
        while !Task.isCancelled {
            let due = nextProbe
            _ = await wakeUps.next(until: due, by: sleeper)
            guard !Task.isCancelled, let due, due <= clock.uptime, nextProbe == due else { continue }
            await request()
            // A probe that reported nothing is used up.
            decide { state, now in
                if state.estimator.nextProbe == due { _ = state.estimator.takeProbe(at: now) }
            }
        }
    }

    /// Stops observing the source and releases it, for ever. The last state stays, and requests are still measured.
    public func close() { _ = attachment.withLock { $0.take() } }

    // MARK: Deciding

    /// - Parameter isStirring: whether to wake `run` and `probe` if their next point in time has changed.
    @discardableResult
    private func decide(
        wakeUps isStirring: Bool = true,
        _ change: (inout Core, MonotonicTime) -> Void
    ) -> State {
        let decided = state.withLock { state in
            let now = clock.uptime
            let before = (state.nextChange, nextProbe(state))
            change(&state, now)
            state.estimator.look(at: now)
            let (level, cause) = level(of: state)
            let new = State(
                level: level,
                cause: cause,
                status: state.status,
                quality: state.estimator.quality
            )
            if let old = state.published, old.level != level {
                records.enqueue(Event(level: level, previous: old.level, cause: cause))
            }
            state.resume.note(level, at: now)
            if level != state.published?.level || cause != state.published?.cause
                || new.status != state.published?.status
            {
                state.published = new
                changes.post(new)
            }
            _ = state.resume.take(at: now)
            let behavior = self.behavior(state, level)
            if behavior != state.publishedBehavior {
                state.publishedBehavior = behavior
                behaviorChanges.post(behavior)
            }
            if isStirring, before != (state.nextChange, nextProbe(state)) { wakeUps.post(()) }
            return new
        }
        records.drain()
        return decided
    }

    private func level(of state: Core) -> (NetworkLevel, State.Cause) {
        if let level = state.override { return (level, .override) }
        if !isConnected(state.status) { return (.offline, .noInterface) }
        let level = state.estimator.level
        let isMetered = state.isMetered ?? state.status.isMetered || configuration.dataBudget?.isSpent ?? false
        if level == .good, isMetered { return (.constrained, .metered) }
        return (level, level == .good ? .nothing : .experience)
    }

    private func isConnected(_ status: NetworkStatus) -> Bool {
        status.isConnected || !configuration.requiresInterface
    }

    /// The usable interfaces: a change means another network.
    private static func ways(_ status: NetworkStatus) -> [NetworkStatus.Interface] {
        // Some systems report the interfaces of a path without addresses.
        let knowsAddresses = status.interfaces.contains { !$0.addresses.isEmpty }
        return knowsAddresses ? status.interfaces.filter(\.isUsable) : status.interfaces
    }
}
