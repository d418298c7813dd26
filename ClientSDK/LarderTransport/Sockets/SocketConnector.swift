import LarderTime
import Synchronization

/// Connects to the first address of a host that accepts a connection (RFC 8305).
///
/// The addresses are tried in turn. The next attempt begins when one has failed, or 250 ms after the last one began; earlier attempts go on
/// beside it. The first connection wins, and the other attempts are closed. It works on the loop's thread, so that a failure is not handled
/// by the caller of `start`. Used once. Safe from any thread.
final class SocketConnector: SocketHandler {
    /// A connected descriptor, which the receiver must close; or why no address was connected to.
    typealias Outcome = Result<Int32, SocketCall.Failure>

    /// The time between two attempts (RFC 8305 §5).
    static let attemptDelay: Duration = .milliseconds(250)

    private struct State {
        /// The addresses that were not tried yet.
        var addresses: ArraySlice<SocketCall.Address>
        var attempts: [Attempt] = []
        /// When the next address is tried although no attempt has failed.
        var nextAttempt: MonotonicTime
        var lastFailure: SocketCall.Failure
        /// Called once, without the lock; nil after the end.
        var completion: (@Sendable (Outcome) -> Void)?
    }

    private let host: String
    private let clock: any MonotonicClock
    private let deadline: MonotonicTime
    private let loop: SocketLoop
    private let jumps: EventRegistration?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - host: for the descriptions of failures.
    ///   - deadline: the deadline for all attempts.
    ///   - completion: called once on the loop's thread, unless the connector is cancelled before.
    init(
        _ addresses: [SocketCall.Address],
        host: String,
        deadline: MonotonicTime,
        clock: any MonotonicClock,
        loop: SocketLoop,
        completion: @escaping @Sendable (Outcome) -> Void
    ) {
        self.host = host
        self.clock = clock
        self.deadline = deadline
        self.loop = loop
        jumps = (clock as? any JumpingClock)?.onJump { loop.wake() }
        state = Mutex(
            State(
                addresses: Self.alternating(addresses)[...],
                nextAttempt: clock.uptime,
                lastFailure: SocketCall.Failure(description: "'\(host)' has no address."),
                completion: completion
            )
        )
    }

    /// Alternates between the address families, beginning with the family of the first address (RFC 8305 §4).
    static func alternating(_ addresses: [SocketCall.Address]) -> [SocketCall.Address] {
        guard let family = addresses.first?.family else { return [] }
        let preferred = addresses.filter { $0.family == family }
        let others = addresses.filter { $0.family != family }
        let paired = zip(preferred, others).flatMap { [$0, $1] }
        return paired + preferred.dropFirst(others.count) + others.dropFirst(preferred.count)
    }

    /// Begins to connect; false if no descriptor is left for the loop itself.
    func start() -> Bool { loop.add(self) }

    /// Closes all attempts. The completion is not called afterwards.
    func cancel() {
        // Released outside of the lock.
        let completion = state.withLock { end(&$0) }
        _ = completion
        loop.wake()
    }

    // MARK: For the loop

    var interest: SocketInterest? {
        state.withLock { state in
            guard state.completion != nil else { return nil }
            let next = state.addresses.isEmpty && !state.attempts.isEmpty ? deadline : min(state.nextAttempt, deadline)
            return SocketInterest(timeLeft: next - clock.uptime)
        }
    }

    func ready() {}

    func deadlineReached() {
        let report = state.withLock { state -> (@Sendable () -> Void)? in
            guard state.completion != nil else { return nil }
            let now = clock.uptime
            if now >= deadline {
                let late = SocketCall.Failure(description: "'\(host)' did not accept the connection in time.")
                return complete(&state, .failure(late))
            }
            return now >= state.nextAttempt ? attemptNext(&state) : nil
        }
        report?()
    }

    // MARK: Attempts

    /// One socket that is connecting.
    private final class Attempt: SocketHandler {
        let descriptor: Int32
        private let connector: SocketConnector

        init(_ descriptor: Int32, of connector: SocketConnector) {
            self.descriptor = descriptor
            self.connector = connector
        }

        var interest: SocketInterest? {
            connector.isRunning(self) ? SocketInterest(descriptor: descriptor, writes: true) : nil
        }

        func ready() { connector.ready(self) }

        func deadlineReached() {}
    }

    private func isRunning(_ attempt: Attempt) -> Bool {
        state.withLock { $0.attempts.contains { $0 === attempt } }
    }

    private func ready(_ attempt: Attempt) {
        let report = state.withLock { state -> (@Sendable () -> Void)? in
            guard let index = state.attempts.firstIndex(where: { $0 === attempt }) else { return nil }
            state.attempts.remove(at: index)
            guard let failure = SocketCall.connectionFailure(attempt.descriptor) else {
                return complete(&state, .success(attempt.descriptor))
            }
            SocketCall.shut(attempt.descriptor)
            state.lastFailure = failure
            return attemptNext(&state)
        }
        report?()
    }

    /// Tries the next address. Fails if none is left and no attempt is running.
    private func attemptNext(_ state: inout State) -> (@Sendable () -> Void)? {
        while let address = state.addresses.popFirst() {
            switch SocketCall.connect(address) {
            case .failure(let failure): state.lastFailure = failure
            case .success(let descriptor):
                let attempt = Attempt(descriptor, of: self)
                state.attempts.append(attempt)
                state.nextAttempt = clock.uptime + Self.attemptDelay
                // The loop has its own descriptors, because this connector was added.
                _ = loop.add(attempt)
                return nil
            }
        }
        return state.attempts.isEmpty ? complete(&state, .failure(state.lastFailure)) : nil
    }

    /// - Returns: reports the outcome; to be called without the lock.
    private func complete(_ state: inout State, _ outcome: Outcome) -> (@Sendable () -> Void)? {
        guard let completion = end(&state) else { return nil }
        return { completion(outcome) }
    }

    private func end(_ state: inout State) -> (@Sendable (Outcome) -> Void)? {
        for attempt in state.attempts { SocketCall.shut(attempt.descriptor) }
        state.attempts = []
        state.addresses = []
        return state.completion.take()
    }
}
