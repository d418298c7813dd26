import LarderEngine
import LarderHTTP

/// One request that was sent on, and its reply. Confined to the loop of the exchange.
///
/// `@unchecked Sendable`: all that changes is used on that loop only. `begin` is called by the handler of the exchange, which runs there; the
/// events of the other server and the end of the client are told there; the end of the world, which any thread can announce, is a job of
/// the loop; `deinit` runs when nobody refers to the relay any more.
final class ProxyRelay: UpstreamReceiver, @unchecked Sendable {
    private enum Phase {
        case waiting
        case collecting(ResponseHead)
        /// The bytes after the head are passed on as they arrive.
        case streaming
        case done
    }

    private let request: Request
    private let exchange: Exchange
    private let world: World
    private let origin: ProxyOrigin
    private var phase = Phase.waiting
    /// What has arrived of the reply's content.
    private var body: [UInt8] = []
    /// The memory that the reply's body has.
    private let lease: BodyMemory.Lease
    /// Weak: a stream whose reply was never sent, because the client was gone or a fault has replaced the reply, is released
    /// and cancels the request.
    private weak var stream: ProxyEventStream?
    /// The request in flight; set after the first events if they arrive at once.
    private var task: UpstreamExchange?
    /// Forgets to end with the world; nil before `begin`.
    private var forget: (@Sendable () -> Void)?

    init(
        _ request: Request,
        _ exchange: Exchange,
        _ world: World,
        _ origin: ProxyOrigin
    ) {
        self.request = request
        self.exchange = exchange
        self.world = world
        self.origin = origin
        lease = origin.memory.emptyLease
    }

    // The request retains its receiver until it is over.
    deinit { forget?() }

    /// The request is on its way; it is cancelled when the client leaves or the world ends.
    func begin(_ task: UpstreamExchange) {
        self.task = task
        // It has failed at once: what the exchange waits for now is not this request.
        if case .done = phase { return }
        exchange.whenAbandoned { task.cancel() }
        let loop = exchange.loop
        forget = world.control.whenEnded { [weak self] in loop.execute { [weak self] in self?.worldEnded() } }
    }

    private func worldEnded() {
        task?.cancel()
        switch Swift.exchange(&phase, with: .done) {
        case .waiting, .collecting:
            exchange.complete(ProblemType.unknownWorld("The world '\(world.id)' was removed.").reply(to: request))
        case .streaming: stream?.failed()
        case .done: break
        }
    }

    private var authority: String { origin.authority }

    func received(_ event: UpstreamEvent) {
        switch event {
        case .head(let head): began(head)
        case .content(let bytes): received(bytes)
        case .end: ended()
        case .failed(let failure): failed(failure)
        }
    }

    private func began(_ head: ResponseHead) {
        if head.status == .switchingProtocols {
            openWebSocket(head)
        } else if let coding = unsupportedCoding(head) {
            giveUp(
                ProblemType.badGateway(
                    "The reply of \(authority) has the transfer coding '\(coding.prefix(100))'. "
                        + "The proxy supports only 'chunked' (RFC 9112 section 6.1)."
                )
            )
        } else if head.status == .ok, head.isEventStream, request.method != .head {
            let stream = ProxyEventStream(task)
            phase = .streaming
            self.stream = stream
            answer(Self.reply(head, .eventStream(stream)))
        } else {
            phase = .collecting(head)
        }
    }

    /// The transfer codings of content that the proxy cannot decode; nil if there are none.
    private func unsupportedCoding(_ head: ResponseHead) -> String? {
        guard head.lines.range(of: "transfer-encoding") != nil, request.method != .head, !head.status.hasNoContent,
            let codings = head.lines.combined(.transferEncoding),
            FieldList.members(of: codings.lowercased()) != ["chunked"]
        else { return nil }
        return codings
    }

    private func received(_ bytes: [UInt8]) {
        guard case .collecting = phase else {
            stream?.received(bytes)
            return
        }
        let maximum = ProxyOrigin.bodyBytesMaximum
        guard body.count + bytes.count <= maximum else {
            return giveUp(
                ProblemType.badGateway(
                    "The reply of \(authority) has more than \(maximum) bytes, the maximum of the proxy."
                )
            )
        }
        do throws(Problem) { try lease.grow(by: bytes.count) } catch { return giveUp(error) }
        if body.isEmpty { body = bytes } else { body.append(contentsOf: bytes) }
    }

    /// Cancels the request and answers with a problem.
    private func giveUp(_ problem: Problem) {
        task?.cancel()
        phase = .done
        body = []
        exchange.complete(origin.reply(problem, to: request))
    }

    private func ended() {
        switch Swift.exchange(&phase, with: .done) {
        case .collecting(let head):
            let location = ProxyLocation(
                authority: authority,
                isSecure: origin.isSecure,
                basePath: origin.basePath,
                for: request
            )
            var reply = Self.reply(head, Swift.exchange(&body, with: []), to: request.method, location)
            reply.lease = lease
            answer(reply)
        case .streaming: stream?.ended()
        case .waiting, .done: break
        }
    }

    /// Passes on the server's reply.
    private func answer(_ reply: Reply) {
        origin.hasAnswered()
        exchange.complete(reply)
    }

    private func failed(_ failure: UpstreamFailure) {
        switch Swift.exchange(&phase, with: .done) {
        // A reply that ended early is not passed on as if it were complete: its head is not sent yet.
        case .waiting, .collecting: exchange.complete(origin.reply(problem(failure), to: request))
        case .streaming: stream?.failed()
        case .done: break
        }
    }

    private func problem(_ failure: UpstreamFailure) -> Problem {
        let reason = failure.sentence(about: authority)
        return switch failure {
        case .unreachable, .invalid: ProblemType.badGateway(reason)
        case .untrusted:
            ProblemType.badGateway(
                reason
                    + " The proxy trusts the system's authorities, or those of --ca FILE; --insecure trusts every certificate."
            )
        case .timedOut: ProblemType.gatewayTimeout(reason)
        case .tooMany: ProblemType.unavailable(reason)
        }
    }

    // MARK: Replies

    /// The reply with the server's fields, without those of its connection.
    static func reply(_ head: ResponseHead, _ body: [UInt8], to method: Method, _ location: ProxyLocation) -> Reply {
        // The length of what a GET would have returned (RFC 9110 §8.6).
        let statesOtherLength = method == .head || head.status == .notModified
        var reply = reply(head, .bytes(body), omitting: statesOtherLength ? [] : ["content-length"], location)
        if !statesOtherLength, !head.status.hasNoContent { reply.head.append("Content-Length", "\(body.count)") }
        return reply
    }

    /// - Parameter omitted: the fields that are not passed on.
    private static func reply(
        _ head: ResponseHead,
        _ body: Reply.Body,
        omitting omitted: [StaticString] = ["content-length"],
        _ location: ProxyLocation? = nil
    ) -> Reply {
        var result = ReplyHead(head)
        result.append {
            let minorVersion = Int(head.minorVersion)
            ProxyFields(head.lines).append(to: &$0, omitting: omitted, minorVersion: minorVersion, location: location)
        }
        var reply = Reply(result, body: body)
        // A recipient with a clock does not replace the origin's date (RFC 9110 §6.6.1).
        if head.lines.range(of: "date") != nil { reply.date = [] }
        return reply
    }

    /// Passes the bytes of both sides on from now on. The WebSocket is that of the client and the server: the proxy reads no frame.
    private func openWebSocket(_ head: ResponseHead) {
        let expected = request.fields.combined(.secWebSocketKey).map { WebSocketHandshake.accept(forKey: $0) }
        guard let task, head.lines[.secWebSocketAccept] == expected else {
            return giveUp(
                ProblemType.badGateway(
                    "\(authority) answered the WebSocket upgrade with a wrong Sec-WebSocket-Accept."
                )
            )
        }
        phase = .streaming
        var reply = Self.reply(head, .tunnel(TunnelEnd(task)))
        reply.head.append("Connection", "Upgrade")
        reply.head.append("Upgrade", "websocket")
        answer(reply)
    }
}
