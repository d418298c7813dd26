public import LarderTime
import Synchronization

/// Makes everything that uses memory do with less while memory is short, and lets it recover step by step afterwards.
///
/// Worse comes at once, better in steps and only after quiet (`MemoryPolicy`). Work is stopped before memory is released, by all
/// reactors, and postures are applied again while pressure lasts: clearing caches without stopping what fills them, so that
/// memory bounces back, does not happen. Safe from any thread. Steps that time alone brings are taken when somebody calls
/// `tick()`, with the next signal, and while `run(sleeper:)` runs.
public final class MemoryGuard: Sendable {
    private struct Application {
        var state: MemoryState
        var isHolding: Bool
        /// Nil for all.
        var only: UInt64?
    }

    private struct State {
        var machine: MemoryMachine
        var isEnabled = true
        var known = MemoryState.initial
        var reactors: [(id: UInt64, reactor: any MemoryReactor)] = []
        var lastID: UInt64 = 0
        /// What is still to be applied, in order; whoever finds nobody doing it does it.
        var pending: [Application] = []
        var isApplying = false
    }

    /// Which signal the source listens to, and why. Asked for the first time, it may take a millisecond to find out.
    public var explanation: String {
        attachment.withLock { $0?.source }?.explanation ?? "The guard was closed, and listens to nothing."
    }

    private let state: Mutex<State>
    private let clock: any MonotonicClock
    private let telemetry: Telemetry
    /// Changes of the level on their way to telemetry: recorded in order, and under no lock.
    private let records = OrderedObservers<TelemetryEvent.Kind>()
    private let recording: EventRegistration
    private let changes = EventHub<MemoryState>()
    private let applied = EventHub<MemoryReport>()
    private let stirs = EventHub<Void>()
    /// The source is kept with it: a system's source ends when nobody holds it.
    private let attachment = Mutex<(source: any MemoryPressureSource, registration: EventRegistration)?>(nil)

    /// Watches a source from now on, until `close` or its own end.
    ///
    /// - Parameters:
    ///   - source: what tells of memory; `SystemMemorySource.make()` gives the platform's.
    ///   - clock: what quiet is measured by.
    public init(
        source: any MemoryPressureSource,
        policy: MemoryPolicy = .standard,
        clock: any MonotonicClock = SystemMonotonicClock(),
        telemetry: Telemetry = .off
    ) {
        state = Mutex(State(machine: MemoryMachine(policy)))
        self.clock = clock
        self.telemetry = telemetry
        recording = records.add { kind in telemetry.record(kind) }
        let token = source.observe { [weak self] signal in self?.note(signal) }
        attachment.withLock { $0 = (source, token) }
    }

    // MARK: Asking

    /// What is known and done now.
    public var current: MemoryState { state.withLock { $0.known } }

    /// What is to be done now.
    public var posture: MemoryPosture { current.posture }

    /// States as they change, beginning with the present one. Who reads slowly gets the newest and not those between.
    public var states: EventSequence<MemoryState> {
        // Under the lock under which changes are posted: none comes between the first state and the subscription.
        state.withLock { changes.subscribe(limit: 1, first: $0.known) }
    }

    /// What each posture has brought, from now on.
    public var reports: EventSequence<MemoryReport> { applied.subscribe(limit: 64) }

    // MARK: Telling

    /// Has a reactor work, until the registration is released. Under pressure it is told at once.
    public func register(_ reactor: any MemoryReactor) -> EventRegistration {
        let id = state.withLock { state in
            state.lastID += 1
            state.reactors.append((state.lastID, reactor))
            if state.known.posture != .normal {
                state.pending.append(Application(state: state.known, isHolding: false, only: state.lastID))
            }
            return state.lastID
        }
        apply()
        return EventRegistration { [weak self] in
            self?.state.withLock { $0.reactors.removeAll { $0.id == id } }
        }
    }

    /// Notes what a source says.
    public func note(_ signal: MemorySignal) {
        decide { state, now in
            state.machine.signal(signal.level, at: now)
            state.known.told = signal.level
            state.known.cause = signal.cause
            return signal.level > .normal
        }
    }

    /// Takes the steps whose time has come.
    public func tick() { look(stirs: true) }

    /// Turns the guard off, so that nothing is done whatever is said, or on again.
    public func setEnabled(_ isEnabled: Bool) {
        decide { state, now in
            state.isEnabled = isEnabled
            state.machine.look(at: now)
            return false
        }
    }

    /// Takes every step at its time; returns when its task is cancelled.
    public func run(sleeper: any Sleeper = SystemSleeper()) async {
        let stirs = stirs.subscribe(limit: 1)
        while !Task.isCancelled {
            _ = await stirs.next(until: state.withLock { $0.machine.nextChange }, by: sleeper)
            look(stirs: false)
        }
    }

    /// Watches its source no more, and lets go of it; what was decided stays. For ever.
    public func close() { _ = attachment.withLock { $0.take() } }

    // MARK: Inside

    private func look(stirs: Bool) {
        decide(stirs: stirs) { state, now in
            state.machine.look(at: now)
            return false
        }
    }

    /// - Parameters:
    ///   - stirs: whether `run` is woken when it has to wait for another time; not by itself, which looks at it anyway.
    ///   - change: gives whether pressure lasts, so that what was reached is held.
    private func decide(stirs isStirring: Bool = true, _ change: (inout State, MonotonicTime) -> Bool) {
        let (wakeups, stirred) = state.withLock { state in
            let old = state.known
            let next = state.machine.nextChange
            let lasts = change(&state, clock.uptime)
            state.known.posture = state.isEnabled ? state.machine.posture : .normal
            let new = state.known
            let isNew = new.posture != old.posture
            if isNew || (lasts && state.isEnabled) {
                state.pending.append(Application(state: new, isHolding: !isNew, only: nil))
            }
            if old.posture.level != new.posture.level {
                records.enqueue(.memoryLevel(new.posture.level, from: old.posture.level, cause: new.cause))
            }
            let wakeups = new == old ? [] : changes.post(new)
            let isStirring = isStirring && next != state.machine.nextChange
            return (wakeups, isStirring ? stirs.post(()) : [])
        }
        for wakeup in wakeups { wakeup.resume() }
        for wakeup in stirred { wakeup.resume() }
        records.drain()
        apply()
    }

    /// Applies what is pending. One thread does at a time, so that no older posture comes after a newer one, and no lock is held
    /// while the reactors work.
    private func apply() {
        let isMine = state.withLock { state in
            defer { state.isApplying = true }
            return !state.isApplying
        }
        guard isMine else { return }
        while true {
            let next = state.withLock { state -> (Application, [any MemoryReactor])? in
                guard !state.pending.isEmpty else {
                    state.isApplying = false
                    return nil
                }
                let application = state.pending.removeFirst()
                let reactors = state.reactors.filter { application.only == nil || application.only == $0.id }
                return (application, reactors.map(\.reactor))
            }
            guard let (application, reactors) = next else { return }
            let posture = application.state.posture
            // All stop before any releases.
            let cancelled = reactors.map { $0.stopWork(for: posture) }
            let freed = reactors.map { $0.releaseMemory(for: posture) }
            let report = MemoryReport(
                state: application.state,
                isHolding: application.isHolding,
                entries: reactors.indices.map { index in
                    .init(name: reactors[index].name, loadsCancelled: cancelled[index], bytesFreed: freed[index])
                }
            )
            if report.loadsCancelled != 0 || report.bytesFreed != 0 {
                let (loads, bytes) = (report.loadsCancelled, report.bytesFreed)
                telemetry.record(.memoryReaction(posture.level, loadsCancelled: loads, bytesFreed: bytes))
            }
            for wakeup in applied.post(report) { wakeup.resume() }
        }
    }
}
