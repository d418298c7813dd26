import LarderHTTP
public import LarderTime
import Synchronization

/// Decides for each host whether a request may be sent now.
///
/// After a 429 or 503 with `Retry-After` (RFC 9110 section 10.2.3) nothing is sent to the host before that time, except requests of a
/// person (`TransportRequest.isUserInitiated`): they fail as `.unreachable`, and `TransportError.retryAfter` has the remaining time. One
/// gate is shared by everything that sends: reads, outbox, images and event streams. It remembers 256 hosts. Safe from any thread.
public final class HostGate: Sendable {
    private let clock: any MonotonicClock
    private let wall: any WallClock
    private let closed = Mutex<[String: MonotonicTime]>([:])
    private static let hostsMaximum = 256

    /// - Parameters:
    ///   - clock: measures the waits.
    ///   - wall: used for a `Retry-After` with a date if the reply has no `Date`.
    public init(
        clock: any MonotonicClock = SystemMonotonicClock(),
        wall: any WallClock = SystemWallClock()
    ) {
        self.clock = clock
        self.wall = wall
    }

    /// A transport that sends the requests that this gate lets through, and tells it of the replies.
    public func guarding(_ transport: any Transport) -> any Transport { GuardedTransport(gate: self, base: transport) }

    /// How long the host of the URL has asked to wait from now on; nil if requests may be sent.
    public func wait(for url: String) -> Duration? {
        guard let host = HTTPURL(url)?.origin, let due = closed.withLock({ $0[host] }) else { return nil }
        let wait = due - clock.uptime
        return wait > .zero ? wait : nil
    }

    fileprivate func admit(_ request: TransportRequest) throws(TransportError) {
        guard !request.isUserInitiated, let wait = wait(for: request.url) else { return }
        let url = HTTPURL.redacted(request.url)
        throw TransportError(
            .unreachable,
            "The host of \(url) has asked to be sent nothing for another \(wait). Nothing was sent.",
            retryAfter: wait
        )
    }

    fileprivate func note(_ status: Status, _ fields: Fields, of request: TransportRequest) {
        guard status.code == 429 || status.code == 503,
            // A captive portal does not speak for the host.
            RetryVerdict(status: status, fields: fields, to: request) != .foreign,
            let wait = RetryAfterField.wait(fields, now: wall.now), wait > .zero,
            let host = HTTPURL(request.url)?.origin
        else { return }
        let now = clock.uptime
        closed.withLock { closed in
            closed[host] = max(closed[host] ?? now, now + wait)
            guard closed.count > Self.hostsMaximum else { return }
            closed = closed.filter { $0.value > now }
            // With too many of them, the one that opens first is forgotten.
            guard closed.count > Self.hostsMaximum, let first = closed.min(by: { $0.value < $1.value }) else { return }
            closed[first.key] = nil
        }
    }
}

/// A transport behind a gate.
private struct GuardedTransport: Transport {
    let gate: HostGate
    let base: any Transport

    // Redirects are followed here, so that each hop is judged by its own host.

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        guard request.followsRedirects else { return try await sendOnce(request) }
        return try await Redirection.follow(request) { hop throws(TransportError) in try await sendOnce(hop) }
    }

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        guard request.followsRedirects else { return try await openOnce(request) }
        return try await Redirection.follow(request) { hop throws(TransportError) in try await openOnce(hop) }
    }

    private func sendOnce(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try gate.admit(request)
        let response = try await base.send(request)
        gate.note(response.status, response.fields, of: request)
        return response
    }

    private func openOnce(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try gate.admit(request)
        let stream = try await base.open(request)
        gate.note(stream.status, stream.fields, of: request)
        return stream
    }
}
