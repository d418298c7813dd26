import LarderEngine
import LarderTime
import Synchronization

/// Records the frames of one live channel in the journal and applies a fault to them.
///
/// The treatment of a frame is a function of the decision's seed and the frame's number. Safe from any thread.
final class FrameFilter: LiveFilter {
    private struct State {
        var count = 0
        /// A frame that is sent after the next one, or alone if none follows within `reorderLimit`.
        var heldBack: LiveEvent?
        /// Sends `heldBack` alone.
        var release: TimerID?
        /// No further frame is sent.
        var isOver = false
        /// The frames that are delayed at present, by number; nil before the timer of one is known.
        var delayed: [Int: TimerID?] = [:]
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
            defer { state.delayed = [:] }
            return [state.timer, state.release] + state.delayed.values
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
            guard !state.isOver else { return (state.count, .drop, "lost", false) }
            state.count += 1
            let (treatment, word) = decide(event, &state)
            if case .send(_, let delay) = treatment, delay > .zero { state.delayed[state.count] = .some(nil) }
            guard fault.endAfterFrames == state.count else { return (state.count, treatment, word, false) }
            state.isOver = true
            state.endsWhenSent = !state.delayed.isEmpty
            return (state.count, treatment, word, !state.endsWhenSent)
        }
        record(.sent, event.token, event.json.count, output, injectedFault: word)
        let release = state.withLock { state in
            defer { if state.heldBack == nil { state.release = nil } }
            return state.heldBack == nil ? state.release : nil
        }
        if let release { world.clock.cancel(release) }
        switch treatment {
        case .send(let events, let delay) where delay > .zero: send(events, after: delay, number, on: output)
        case .send(let events, _): for event in events { output.emit(event) }
        case .holdBack: holdBack(output)
        case .drop: break
        }
        if ends { end(output) }
    }

    /// Sends a delayed frame, unless the channel is closed before.
    private func send(_ events: [LiveEvent], after delay: Duration, _ number: Int, on output: any LiveOutput) {
        let timer = world.clock.schedule(after: delay) { [self] in
            for event in events { output.emit(event) }
            let isLast = state.withLock { state in
                state.delayed[number] = nil
                return state.endsWhenSent && state.delayed.isEmpty
            }
            if isLast { end(output) }
        }
        let isOver = state.withLock { state in
            guard state.delayed[number] != nil else { return true }
            state.delayed[number] = timer
            return false
        }
        if isOver { world.clock.cancel(timer) }
    }

    /// Sends the frame that is held back, unless another one is sent before.
    private func holdBack(_ output: any LiveOutput) {
        let timer = world.clock.schedule(after: Self.reorderLimit) { [self, weak output] in
            let event = state.withLock { state in
                defer { state.heldBack = nil }
                return state.isOver ? nil : state.heldBack
            }
            if let event { output?.emit(event) }
        }
        state.withLock { $0.release = timer }
    }

    private enum Treatment {
        case drop
        case holdBack
        case send([LiveEvent], delay: Duration)
    }

    /// How the next frame is treated, and the word for the journal.
    private func decide(_ event: LiveEvent, _ state: inout State) -> (Treatment, String?) {
        guard let decision else { return (.send([event], delay: .zero), nil) }
        if let limit = fault.silenceAfterFrames, state.count > limit { return (.drop, "silenced") }
        var generator = SeededGenerator(seed: decision.seed ^ UInt64(state.count) &* 0x9E37_79B9_7F4A_7C15)
        // Always drawn, so that one probability does not affect the random numbers of the others.
        let (loses, doubles, reorders) = (
            generator.unit() < fault.lose, generator.unit() < fault.duplicate, generator.unit() < fault.reorder
        )
        let delay = fault.delay?.draw(&generator, ordinal: state.count) ?? .zero
        if loses || fault.loseFrame == state.count { return (.drop, "lost") }
        var events = doubles ? [event, event] : [event]
        if let held = state.heldBack {
            state.heldBack = nil
            events.append(held)
            return (.send(events, delay: delay), "reordered")
        }
        if reorders {
            state.heldBack = event
            return (.holdBack, "held back")
        }
        return (.send(events, delay: delay), doubles ? "doubled" : delay > .zero ? "delayed" : nil)
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
