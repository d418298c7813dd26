import LarderEvents
import LarderHTTP
public import LarderResources
import LarderTime
public import LarderTransport

extension APIClient {
    /// Opens a WebSocket, authorized by the session; once more after a 401 if the tokens were renewed.
    ///
    /// - Parameters:
    ///   - path: a path of the server, or an absolute URL with any scheme. Another origin gets no credentials.
    ///   - subprotocols: the offered subprotocols, in order of preference.
    /// - Throws: `.offline`, with `retryAfter` if the host has asked for a pause; `.rejected` with the status; `.unauthorized`.
    public func openWebSocket(
        _ path: String,
        subprotocols: [String] = []
    ) async throws(LarderError) -> any WebSocketConnection {
        try await channels.webSocket(path, subprotocols: subprotocols)
    }
}

/// Opens live channels: authorized, behind the host gate, and with one kind of error.
struct LiveChannelOpener: Sendable {
    private struct Failure: Error {
        /// Nil if the status decides.
        var code: ErrorCode<LarderError>?
        var status: Status?
        var cause: any Error
        var retryAfter: Duration?
    }

    let account: AccountTransport
    let webSockets: WebSocketClient
    let gate: HostGate
    let clock: any MonotonicClock

    func eventStream(_ path: String, lastEventID: String) async throws(LarderError) -> EventStream {
        let client = EventStreamClient(account.base, clock: clock)
        return try await open(account.url(path)) { (url, fields) throws(Failure) in
            do throws(EventStreamError) {
                return try await client.open(url, fields: fields, lastEventID: lastEventID)
            } catch {
                let isUntrusted = error.transport?.code == .untrusted
                throw Failure(
                    code: error.code == .cancelled
                        ? .cancelled : error.code == .finished ? .gone : isUntrusted ? .untrusted : nil,
                    status: error.status,
                    cause: error,
                    retryAfter: error.transport?.retryAfter
                )
            }
        }
    }

    func webSocket(_ path: String, subprotocols: [String]) async throws(LarderError) -> any WebSocketConnection {
        let url = account.url(path)
        let target = url.prefix(4).lowercased() == "http" ? "ws" + url.dropFirst(4) : url
        return try await open(target) { (url, fields) throws(Failure) in
            do throws(WebSocketError) {
                return try await webSockets.connect(url, fields: fields, subprotocols: subprotocols)
            } catch {
                throw Failure(
                    code: error.code == .cancelled ? .cancelled : error.code == .untrusted ? .untrusted : nil,
                    status: error.status,
                    cause: error,
                    retryAfter: error.retryAfter
                )
            }
        }
    }

    private func open<Channel>(
        _ url: String,
        _ connect: (_ url: String, Fields) async throws(Failure) -> Channel
    ) async throws(LarderError) -> Channel {
        guard account.source.mayUseNetwork() else {
            let text = "The network may not be used; \(HTTPURL.redacted(url)) was not requested."
            throw LarderError(TransportError(.unreachable, text))
        }
        let request = TransportRequest(url: url)
        func attempt(_ request: TransportRequest) async throws(LarderError) -> Result<Channel, Failure> {
            do throws(Failure) { return .success(try await connect(url, request.fields)) } catch {
                return .failure(error)
            }
        }
        let result =
            if account.source.isOwn(url) {
                try await account.session.sending(
                    request,
                    isRejected: { if case .failure(let error) = $0 { error.status == .unauthorized } else { false } },
                    failed: { (error, _) throws(LarderError) in throw error },
                    attempt
                )
            } else {
                try await attempt(request)
            }
        do throws(Failure) { return try result.get() } catch {
            let isRejected = error.status.map { $0.code >= 400 && $0.code < 500 && $0.code != 429 } ?? false
            throw LarderError(
                error.code ?? (isRejected ? .rejected : .offline),
                "\(error.cause)",
                cause: error.cause,
                status: error.status.map { Int($0.code) },
                retryAfter: error.retryAfter ?? gate.wait(for: request)
            )
        }
    }
}

/// The WebSockets of a client whose transport has none. Those of another transport would have neither its pins nor its authorities.
struct NoWebSockets: WebSocketConnector {
    func connect(
        _ request: WebSocketClient.Request,
        _ configuration: WebSocketClient.Configuration
    ) async throws(WebSocketError) -> any WebSocketConnection {
        throw WebSocketError(
            .invalidRequest,
            "The transport of this client opens no WebSockets. Set APIClient.Configuration.webSockets to SocketTransport.webSockets()."
        )
    }
}
