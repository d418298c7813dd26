public import LarderEvents
public import LarderTime
public import Synchronization

/// The stream of all events of the SDK, and their totals.
///
/// Without listeners, recorder and totals, an event costs one relaxed atomic load and is not created. Safe from any thread; events
/// are numbered, counted and delivered in one order. While that order is established, only the clocks are called.
public final class Telemetry: Sendable {
    private struct State {
        var sequence: UInt64 = 0
        var totals = TelemetryTotals()
        var labels = TelemetryEvent.Labels.none
    }

    /// Not 0 while events are needed: 1 for totals, 2 for the recorder, 4 for each listener.
    @usableFromInline let interest: Atomic<Int>
    private let state = Mutex(State())
    private let hub = EventHub<TelemetryEvent>()
    private let wall: any WallClock
    private let monotonic: any MonotonicClock
    private let recorder: FlightRecorder?

    private static let totalsInterest = 1
    private static let recorderInterest = 2
    private static let listenerInterest = 4

    /// - Parameters:
    ///   - totals: whether totals are counted from the start.
    ///   - recorder: stores the last events on disk, to be read after a crash.
    ///   - wall: used for the time of events.
    ///   - monotonic: used for durations.
    public init(
        totals: Bool = true,
        recorder: FlightRecorder? = nil,
        wall: any WallClock = SystemWallClock(),
        monotonic: any MonotonicClock = SystemMonotonicClock()
    ) {
        interest = Atomic((totals ? Self.totalsInterest : 0) | (recorder == nil ? 0 : Self.recorderInterest))
        self.recorder = recorder
        self.wall = wall
        self.monotonic = monotonic
    }

    /// The labels of the events from now on.
    package var labels: TelemetryEvent.Labels { state.withLock { $0.labels } }

    /// Names the session and the version of the app in all events from now on, to compare versions and to join the events of a session.
    ///
    /// - Parameters:
    ///   - session: random, and not the identity of a person or a device; at most 24 bytes of it are kept.
    ///   - appVersion: such as `3.4.1`; at most 24 bytes.
    public func setLabels(session: String, appVersion: String) {
        let labels = TelemetryEvent.Labels(session: session, appVersion: appVersion)
        state.withLock { state in
            state.labels = labels
            state.totals.labels = labels
        }
    }

    // MARK: Recording

    /// Whether events are needed: for callers that have to measure something first.
    @inlinable public var isActive: Bool { interest.load(ordering: .relaxed) != 0 }

    /// Records an event.
    ///
    /// - Parameter kind: the event; evaluated only if it is needed.
    @inlinable public func record(_ kind: @autoclosure () -> TelemetryEvent.Kind) {
        guard interest.load(ordering: .relaxed) != 0 else { return }
        deliver(kind())
    }

    @usableFromInline func deliver(_ kind: TelemetryEvent.Kind) {
        let interest = interest.load(ordering: .relaxed)
        let event = state.withLock { state in
            state.sequence += 1
            let event = TelemetryEvent(
                sequence: state.sequence,
                uptime: monotonic.uptime,
                wall: wall.now,
                kind: kind,
                labels: state.labels
            )
            if interest & Self.totalsInterest != 0 { state.totals.add(kind, state.labels) }
            if interest >= Self.listenerInterest { hub.post(event) }
            return event
        }
        // Each event has its own slot in the recorder's file, so that no lock is needed.
        recorder?.record(event)
    }

    // MARK: Listening

    /// The events from now on.
    ///
    /// - Parameter limit: the maximum number of events that wait for the reader; beyond it the oldest are dropped and
    ///   counted.
    public func events(bufferedAtMost limit: Int = 1_024) -> EventSequence<TelemetryEvent> {
        interest.wrappingAdd(Self.listenerInterest, ordering: .relaxed)
        return hub.subscribe(limit: limit) { [weak self] in
            self?.interest.wrappingSubtract(Self.listenerInterest, ordering: .relaxed)
        }
    }

    /// The totals since counting was turned on.
    public var totals: TelemetryTotals {
        var totals = state.withLock { $0.totals }
        totals.eventsDropped = hub.droppedCount
        totals.recorderFailures = recorder?.failureCount ?? 0
        return totals
    }

    /// Turns counting on or off. The totals so far stay.
    public func setTotals(_ isOn: Bool) {
        if isOn {
            interest.bitwiseOr(Self.totalsInterest, ordering: .relaxed)
        } else {
            interest.bitwiseAnd(~Self.totalsInterest, ordering: .relaxed)
        }
    }
}
