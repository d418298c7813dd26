import LarderHTTP
package import LarderTime
import Synchronization

/// Decides for each host whether a request may be sent now.
///
/// After a 429 or 503 nothing is sent to the host for the time of its `Retry-After` (RFC 9110 §10.2.3), at most an hour, or, if it states
/// none, for a back-off with full jitter. The next success opens the gate. Other requests fail as `.unreachable` with
/// `TransportError.retryAfter`; those of a person (`TransportRequest.isUserInitiated`) are sent. One gate is shared by everything that
/// sends. Servers that limit each action alone have a gate for each scope of a host. It remembers 256 of them. Safe from any thread.
package final class HostGate: Sendable {
    private struct Host {
        /// Nothing is sent before this time.
        var due: MonotonicTime
        /// The number of overloads without another reply between them.
        var overloads = 0
        /// The ordinal of the last 429 or 503.
        var lastRejection = 0
        /// The ordinal of the last one that was counted. Replies to requests that were sent before do not count again.
        var lastCounted = 0
    }

    private struct State {
        var hosts: [String: Host] = [:]
        /// The number of 429 and 503 replies of all hosts, which orders requests and rejections.
        var rejections = 0
    }

    private let clock: any MonotonicClock
    private let wall: any WallClock
    private let overload: RetryPolicy
    private let random: @Sendable () -> Double
    private let scope: @Sendable (TransportRequest) -> String?
    private let retryAfter: @Sendable (TransportResponse) -> Duration?
    private let state = Mutex(State())
    private static let hostsMaximum = 256

    /// - Parameters:
    ///   - clock: measures the waits.
    ///   - wall: used for a `Retry-After` with a date if the reply has no `Date`.
    ///   - overload: the back-off after a 429 or 503 without `Retry-After`: `base` and `ceiling`.
    ///   - random: returns numbers in 0..<1 for the jitter.
    ///   - scope: which requests to one host wait together: those with the same text. Nil: the request is never held back, and its reply
    ///     holds nothing back.
    ///   - retryAfter: how long to wait by a reply without `Retry-After` that says so otherwise; nil: it does not.
    package init(
        clock: any MonotonicClock = SystemMonotonicClock(),
        wall: any WallClock = SystemWallClock(),
        overload: RetryPolicy = RetryPolicy(base: .seconds(1), ceiling: .seconds(60)),
        random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) },
        scope: @escaping @Sendable (TransportRequest) -> String? = { _ in "" },
        retryAfter: @escaping @Sendable (TransportResponse) -> Duration? = { _ in nil }
    ) {
        self.clock = clock
        self.wall = wall
        self.overload = overload
        self.random = random
        self.scope = scope
        self.retryAfter = retryAfter
    }

    /// A transport that sends the requests that this gate lets through, and tells it of the replies.
    package func guarding(_ transport: any Transport) -> any Transport { GuardedTransport(gate: self, base: transport) }

    /// A WebSocket client whose handshakes pass this gate: one that may not be sent fails as `.unreachable` with `retryAfter`.
    package func guarding(_ client: WebSocketClient) -> WebSocketClient {
        client.wrapped { GuardedWebSocketConnector(gate: self, base: $0) }
    }

    /// How long this request may not be sent from now on; nil if it may be sent. The schemes `ws` and `wss` count as `http` and `https`.
    package func wait(for request: TransportRequest) -> Duration? {
        guard let host = host(of: request), let due = state.withLock({ $0.hosts[host]?.due }) else { return nil }
        let wait = due - clock.uptime
        return wait > .zero ? wait : nil
    }

    /// The host with the scope of the request; nil if the request passes by.
    private func host(of request: TransportRequest) -> String? {
        let url = request.url
        let isWebSocket = url.utf8.count > 3 && url.prefix(2).lowercased() == "ws"
        guard let origin = HTTPURL(isWebSocket ? "http" + url.dropFirst(2) : url)?.origin, let scope = scope(request)
        else { return nil }
        return scope.isEmpty ? origin : "\(origin) \(scope)"
    }

    /// - Returns: the number of rejections before the request, for `note`.
    /// - Throws: `.unreachable` if it may not be sent.
    fileprivate func admit(_ request: TransportRequest) throws(TransportError) -> Int {
        guard !request.isUserInitiated, let wait = wait(for: request) else { return state.withLock { $0.rejections } }
        throw TransportError(
            .unreachable,
            "The host of \(HTTPURL.redacted(request.url)) is overloaded or has asked for a pause: no request is sent for another \(wait).",
            retryAfter: wait
        )
    }

    /// Whether the content of a reply may say how long to wait.
    fileprivate static func isOverload(_ status: Status) -> Bool { status.code == 429 || status.code == 503 }

    /// - Parameter rejections: the result of `admit` for the request.
    fileprivate func note(_ response: TransportResponse, of request: TransportRequest, after rejections: Int) {
        let status = response.status
        // A captive portal does not speak for the host.
        guard !ForeignReply.isForeign(response.fields, to: request),
            let host = host(of: request)
        else { return }
        guard Self.isOverload(status) else {
            let isSuccess = (200..<300).contains(status.code) || [.switchingProtocols, .notModified].contains(status)
            return state.withLock { state in
                // A reply to an earlier request says nothing of the host's present load.
                guard let lastRejection = state.hosts[host]?.lastRejection, rejections >= lastRejection else { return }
                if isSuccess {
                    state.hosts[host] = nil
                } else {
                    state.hosts[host]?.overloads = 0
                }
            }
        }
        let asked = RetryAfterField.wait(response.fields, now: wall.now, or: retryAfter(response))
        let (now, random) = (clock.uptime, random())
        state.withLock { state in
            state.rejections += 1
            var entry = state.hosts[host] ?? Host(due: now)
            // Replies to requests that were sent together count once.
            let isNew = rejections >= entry.lastCounted
            entry.lastRejection = state.rejections
            if isNew {
                entry.overloads += 1
                entry.lastCounted = state.rejections
            }
            if let asked {
                entry.due = max(entry.due, now + asked)
            } else if isNew {
                entry.due = max(entry.due, now + overload.backoffMaximum(attempt: entry.overloads) * random)
            }
            state.hosts[host] = entry
            guard state.hosts.count > Self.hostsMaximum else { return }
            // With too many of them, the one that opens first is forgotten.
            guard let first = state.hosts.min(by: { $0.value.due < $1.value.due }) else { return }
            state.hosts[first.key] = nil
        }
    }
}

/// A transport behind a gate.
private struct GuardedTransport: Transport {
    let gate: HostGate
    let base: any Transport

    /// Redirects are followed here, so that each hop is judged by its own host.
    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try await Redirection.follow(request) { hop throws(TransportError) in try await openOnce(hop) }
    }

    private func openOnce(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        let rejections = try gate.admit(request)
        var stream = try await base.open(request)
        var head = TransportResponse(status: stream.status, fields: stream.fields, redirectedTo: stream.redirectedTo)
        defer { gate.note(head, of: request, after: rejections) }
        guard HostGate.isOverload(stream.status), stream.fields[.retryAfter] == nil else { return stream }
        while head.body.count < Self.bodyBytesMaximum {
            guard let piece = try await stream.body.next() else { return TransportStream(head) }
            head.body += piece
        }
        let start = Mutex<[UInt8]?>(head.body)
        let rest = stream.body
        stream.body = TransportStream.Body { () async throws(TransportError) in
            if let start = start.withLock({ $0.take() }) { return start }
            return try await rest.next()
        }
        return stream
    }

    /// So much of a rejection may say how long to wait.
    private static let bodyBytesMaximum = 64 << 10
}

/// A WebSocket connector behind a gate.
private struct GuardedWebSocketConnector: WebSocketConnector {
    let gate: HostGate
    let base: any WebSocketConnector

    func connect(
        _ request: WebSocketClient.Request,
        _ configuration: WebSocketClient.Configuration
    ) async throws(WebSocketError) -> any WebSocketConnection {
        var handshake = TransportRequest(url: request.url, fields: request.fields)
        handshake.isUserInitiated = false
        let rejections: Int
        do throws(TransportError) { rejections = try gate.admit(handshake) } catch {
            throw WebSocketError(.unreachable, error.description, retryAfter: error.retryAfter)
        }
        do throws(WebSocketError) {
            let connection = try await base.connect(request, configuration)
            let response = TransportResponse(status: .switchingProtocols, fields: connection.fields)
            gate.note(response, of: handshake, after: rejections)
            return connection
        } catch {
            guard let status = error.status else { throw error }
            let response = TransportResponse(status: status, fields: error.fields, body: error.body)
            gate.note(response, of: handshake, after: rejections)
            guard error.retryAfter == nil, let wait = gate.wait(for: handshake) else { throw error }
            throw WebSocketError(
                error.code,
                error.description,
                status: status,
                fields: error.fields,
                body: error.body,
                retryAfter: wait
            )
        }
    }
}
