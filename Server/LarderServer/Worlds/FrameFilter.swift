import LarderEngine
import LarderTime
import Synchronization

/// Records the frames of one live channel in the journal and applies a fault to them.
///
/// The treatment of a frame is a function of the decision's seed and the frame's number. Safe from any thread.
final class FrameFilter: LiveFilter {
    private struct State {
        var count = 0
        /// No further frame is sent.
        var isOver = false
        /// The frames that are delayed at present, by number; without a timer before it is known.
        var delayed: [Int: (events: [LiveEvent], timer: TimerID?)] = [:]
        /// The delayed frame that is sent behind the next one if that comes earlier.
        var heldBack: Int?
        /// Whether the channel ends when the last delayed frame is sent.
        var endsWhenSent = false
        /// Ends the channel (`LiveFault.endAfter`).
        var timer: TimerID?
    }

    /// The longest that a frame waits for one that is sent before it: otherwise the last frame of a channel would be lost.
    static let reorderLimit = Duration.seconds(1)

    private let fault: LiveFault
    private let decision: FaultDecision?
    private let world: World
    private let opening: Request
    private let subject: Int64
    private let state = Mutex(State())
    private let channelEnd = ChannelEnd()

    init(_ fault: LiveFault, _ decision: FaultDecision?, world: World, opening: Request, subject: Int64) {
        self.fault = fault
        self.decision = decision
        self.world = world
        self.opening = opening
        self.subject = subject
    }

    func opened(_ output: any LiveOutput) {
        if let limit = fault.endAfter {
            let timer = world.clock.schedule(after: limit) { [self, weak output] in
                if let output { end(output) }
            }
            state.withLock { $0.timer = timer }
        }
        if fault.endAfterFrames == 0 { end(output) }
    }

    func closed() {
        channelEnd.note(world.clock.uptime)
        let timers = state.withLock { state in
            defer { (state.delayed, state.heldBack) = ([:], nil) }
            return [state.timer] + state.delayed.values.map(\.timer)
        }
        for case let timer? in timers { world.clock.cancel(timer) }
    }

    /// A frame came from the peer.
    func received(_ bytes: Int, from output: any LiveOutput) {
        record(.received, nil, bytes, output, injectedFault: nil)
    }

    /// Sends an event as the fault requires. The store may be locked: bytes are only handed on.
    func pass(_ event: LiveEvent, to output: any LiveOutput) {
        let (number, treatment, word, ends) = state.withLock { state -> (Int, Treatment, String?, Bool) in
            guard !state.isOver else { return (state.count, Treatment(), "lost", false) }
            state.count += 1
            let (treatment, word) = decide(event, &state)
            if treatment.delay > .zero { state.delayed[state.count] = (treatment.events, nil) }
            guard fault.endAfterFrames == state.count else { return (state.count, treatment, word, false) }
            state.isOver = true
            state.endsWhenSent = !state.delayed.isEmpty
            return (state.count, treatment, word, !state.endsWhenSent)
        }
        record(.sent, event.token, event.json.count, output, injectedFault: word)
        if let timer = treatment.overtaken { world.clock.cancel(timer) }
        if treatment.delay > .zero {
            send(number, after: treatment.delay, on: output)
        } else {
            for event in treatment.events { output.emit(event) }
        }
        if ends { end(output) }
    }

    /// Sends a delayed frame, unless the channel is closed before, or the next frame has taken it along.
    private func send(_ number: Int, after delay: Duration, on output: any LiveOutput) {
        let timer = world.clock.schedule(after: delay) { [self] in
            let events = state.withLock { state in
                if state.heldBack == number { state.heldBack = nil }
                return state.delayed[number]?.events
            }
            guard let events else { return }
            for event in events { output.emit(event) }
            let isLast = state.withLock { state in
                state.delayed[number] = nil
                return state.endsWhenSent && state.delayed.isEmpty
            }
            if isLast { end(output) }
        }
        let isOver = state.withLock { state in
            guard state.delayed[number] != nil else { return true }
            state.delayed[number]?.timer = timer
            return false
        }
        if isOver { world.clock.cancel(timer) }
    }

    /// What is sent for a frame.
    private struct Treatment {
        /// Empty: nothing.
        var events: [LiveEvent] = []
        var delay = Duration.zero
        /// The timer of a frame that was held back, and is sent with this one.
        var overtaken: TimerID?
    }

    /// How the next frame is treated, and the word for the journal.
    private func decide(_ event: LiveEvent, _ state: inout State) -> (Treatment, String?) {
        guard let decision else { return (Treatment(events: [event]), nil) }
        if let limit = fault.silenceAfterFrames, state.count > limit { return (Treatment(), "silenced") }
        var generator = SeededGenerator(seed: decision.seed ^ UInt64(state.count) &* 0x9E37_79B9_7F4A_7C15)
        // Always drawn, so that one probability does not affect the random numbers of the others.
        let (loses, doubles, reorders) = (
            generator.unit() < fault.lose, generator.unit() < fault.duplicate, generator.unit() < fault.reorder
        )
        let delay = fault.delay?.draw(&generator, ordinal: state.count) ?? .zero
        if loses || fault.loseFrame == state.count { return (Treatment(), "lost") }
        let events = doubles ? [event, event] : [event]
        if let number = state.heldBack.take(), let held = state.delayed.removeValue(forKey: number) {
            return (Treatment(events: events + held.events, delay: delay, overtaken: held.timer), "reordered")
        }
        if reorders {
            state.heldBack = state.count
            return (Treatment(events: [event], delay: Self.reorderLimit), "held back")
        }
        return (Treatment(events: events, delay: delay), doubles ? "doubled" : delay > .zero ? "delayed" : nil)
    }

    private func end(_ output: any LiveOutput) {
        state.withLock { $0.isOver = true }
        channelEnd.note(world.clock.uptime)
        output.end(code: fault.closeCode.map { UInt16(clamping: $0) })
    }

    private func record(
        _ direction: JournalEntry.Frame.Direction,
        _ token: String?,
        _ bytes: Int,
        _ output: any LiveOutput,
        injectedFault: String?
    ) {
        let journal = world.control.journal
        guard journal.isEnabled else { return }
        let frame = JournalEntry.Frame(
            channel: output.kind,
            direction: direction,
            token: token,
            injectedFault: injectedFault,
            end: channelEnd
        )
        journal.append(JournalEntry(frame, bytes: bytes, opening: opening, user: subject, in: world))
    }
}
