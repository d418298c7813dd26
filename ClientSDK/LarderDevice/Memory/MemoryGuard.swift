public import LarderEvents
public import LarderTime
import Synchronization

/// Reduces the memory use of registered components under pressure, and lets them recover step by step afterwards.
///
/// Stricter limits apply at once, recovery takes steps after quiet (`MemoryPolicy`). All reactions stop work before any releases
/// memory, and limits are applied again while pressure lasts, so that running work does not refill the caches. Safe from any
/// thread. Timed steps are taken by `tick()`, with the next signal, and while `run(sleeper:)` runs.
///
/// ```swift
/// if let memory = client.memory {
///     for await limits in memory.limitChanges { print(limits.level, limits.cacheShare) }
/// }
/// ```
public final class MemoryGuard: Sendable {
    package enum Event: Sendable, Hashable {
        /// The level has changed.
        case level(MemoryLevel, previous: MemoryLevel, cause: String)
        /// The level has risen, and this is what the components held and did before their reactions.
        case usage(MemoryLevel, MemoryReaction.Usage)
        /// The reactions have cancelled loads or freed memory.
        case reaction(MemoryLevel, loadsCancelled: Int, bytesFreed: Int)
    }

    private struct Application {
        var limits: MemoryLimits
        /// The only reaction to call; nil for all.
        var only: UInt64?
        /// Whether the level has risen, so that usage is measured first.
        var isRise = false
    }

    private struct Core {
        var machine: MemoryMachine
        var isEnabled = true
        var known = State.initial
        var reactions: [(id: UInt64, reaction: MemoryReaction)] = []
        var lastID: UInt64 = 0
    }

    /// The description of the source. The first read may take a millisecond.
    public var explanation: String {
        attachment.withLock { $0?.source }?.explanation ?? "The guard is closed and has no source."
    }

    private let state: Mutex<Core>
    private let clock: any MonotonicClock
    /// Events to be passed to `onEvent`: in order, while no lock is held.
    private let records = OrderedObservers<Event>()
    private let recording: EventRegistration
    /// The applications to carry out: in order, by one thread at a time, while no lock is held.
    private let applications = OrderedObservers<Application>()
    private let applying = Mutex<EventRegistration?>(nil)
    private let changes = EventHub<State>()
    private let wakeUps = EventHub<Void>()
    /// Holds the source too: a system's source ends when it is released.
    private let attachment = Mutex<(source: any Source, registration: EventRegistration)?>(nil)

    /// Observes a source until `close` or its own end.
    ///
    /// - Parameters:
    ///   - source: reports memory pressure.
    ///   - policy: the levels at which it reacts, and when it calms down.
    ///   - clock: used for the quiet time and recovery.
    ///   - onEvent: called for each event.
    package init(
        source: any Source,
        policy: MemoryPolicy = .standard,
        clock: any MonotonicClock = SystemMonotonicClock(),
        onEvent: @escaping @Sendable (Event) -> Void = { _ in }
    ) {
        state = Mutex(Core(machine: MemoryMachine(policy)))
        self.clock = clock
        recording = records.add(onEvent)
        applying.withLock { $0 = applications.add { [weak self] in self?.apply($0) } }
        let token = source.observe { [weak self] signal in self?.note(signal) }
        attachment.withLock { $0 = (source, token) }
    }

    /// Observes the system's memory pressure until `close`: for several clients that share a guard (`APIClient.Services.memory`).
    public convenience init(policy: MemoryPolicy = .standard) { self.init(source: Self.systemSource(), policy: policy) }

    // MARK: Asking

    /// The reported pressure and the limits now.
    package var current: State { state.withLock { $0.known } }

    /// The limits now.
    public var limits: MemoryLimits { current.limits }

    /// The limits as they change, beginning with the current ones. A slow reader gets only the newest.
    public var limitChanges: some AsyncSequence<MemoryLimits, Never> & Sendable { states.map { $0.limits } }

    /// The states as they change, beginning with the current one. A slow reader gets only the newest.
    package var states: EventSequence<State> {
        // Under the lock under which changes are posted, so that none is missed between the first state and the subscription.
        state.withLock { changes.subscribe(limit: 1, first: $0.known) }
    }

    // MARK: Telling

    /// Registers a reaction until the registration is released. Under pressure it is called at once.
    package func register(_ reaction: MemoryReaction) -> EventRegistration {
        let id = state.withLock { state in
            state.lastID += 1
            state.reactions.append((state.lastID, reaction))
            if state.known.limits != .normal {
                applications.enqueue(Application(limits: state.known.limits, only: state.lastID))
            }
            return state.lastID
        }
        applications.drain()
        return EventRegistration { [weak self] in
            self?.state.withLock { $0.reactions.removeAll { $0.id == id } }
        }
    }

    /// Reports a pressure that the app knows of otherwise than the system's signal; `.normal` ends it. Reactions have been called when this
    /// returns, unless another thread is calling them: then it calls them for this, too.
    public func report(_ level: MemoryLevel) { note(Signal(level, cause: "reported by the app")) }

    /// Notes a report of a source.
    package func note(_ signal: Signal) {
        decide { state, now in
            state.machine.signal(signal.level, at: now)
            state.known.reported = signal.level
            state.known.cause = signal.cause
            return signal.level > .normal
        }
    }

    /// Takes the steps that are due.
    package func tick() { look(wakeUps: true) }

    /// Turns the guard off, so that no limits apply, or on again.
    public func setEnabled(_ isEnabled: Bool) {
        decide { state, now in
            state.isEnabled = isEnabled
            state.machine.look(at: now)
            return false
        }
    }

    /// Takes each step at its time; returns when its task is cancelled.
    public func run(sleeper: any MonotonicClock = SystemMonotonicClock()) async {
        let wakeUps = wakeUps.subscribe(limit: 1)
        while !Task.isCancelled {
            _ = await wakeUps.next(until: state.withLock { $0.machine.nextChange }, by: sleeper)
            look(wakeUps: false)
        }
    }

    /// Stops observing the source and releases it, for ever. The last decision stays.
    public func close() { _ = attachment.withLock { $0.take() } }

    // MARK: Inside

    private func look(wakeUps: Bool) {
        decide(wakeUps: wakeUps) { state, now in
            state.machine.look(at: now)
            return false
        }
    }

    /// - Parameters:
    ///   - wakeUps: whether to wake `run` if its next point in time has changed.
    ///   - change: returns whether pressure lasts, so that the limits are applied again.
    private func decide(wakeUps isStirring: Bool = true, _ change: (inout Core, MonotonicTime) -> Bool) {
        state.withLock { state in
            let old = state.known
            let next = state.machine.nextChange
            let lasts = change(&state, clock.uptime)
            state.known.limits = state.isEnabled ? state.machine.limits : .normal
            let new = state.known
            let isNew = new.limits != old.limits
            if isNew || (lasts && state.isEnabled) {
                let isRise = new.limits.level > old.limits.level
                applications.enqueue(Application(limits: new.limits, only: nil, isRise: isRise))
            }
            if old.limits.level != new.limits.level {
                records.enqueue(.level(new.limits.level, previous: old.limits.level, cause: new.cause))
            }
            if new != old { changes.post(new) }
            if isStirring, next != state.machine.nextChange { wakeUps.post(()) }
        }
        records.drain()
        applications.drain()
    }

    /// An older state never follows a newer one.
    private func apply(_ application: Application) {
        let limits = application.limits
        let reactions = state.withLock { state in
            state.reactions.filter { application.only == nil || application.only == $0.id }.map(\.reaction)
        }
        if application.isRise {
            let usage = reactions.reduce(into: MemoryReaction.Usage()) { sum, reaction in
                let part = reaction.measure()
                sum.cost &+= part.cost
                sum.requests &+= part.requests
                sum.loads &+= part.loads
            }
            records.tell(.usage(limits.level, usage))
        }
        // All stop before any releases.
        let loads = reactions.reduce(0) { $0 &+ $1.stop(limits) }
        let bytes = reactions.reduce(0) { $0 &+ $1.release(limits) }
        if loads != 0 || bytes != 0 {
            records.tell(.reaction(limits.level, loadsCancelled: loads, bytesFreed: bytes))
        }
    }
}
