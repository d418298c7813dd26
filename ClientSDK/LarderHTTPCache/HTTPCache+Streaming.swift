import LarderHTTP
import LarderTime
public import LarderTransport
import Synchronization

/// Streamed responses.
extension HTTPCache {
    /// Sends a request or serves a stored response. Content from the network is passed on in pieces and stored when it
    /// is complete. Equal requests do not share a stream.
    public func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try await Redirection.follow(request) { (hop) async throws(TransportError) in try await self.openHop(hop) }
    }

    private func openHop(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        if request.method == .head { return TransportStream(try await send(request)) }
        guard request.method == .get, !request.hasContent, let url = HTTPURL(request.url) else {
            return try await openPast(request)
        }
        switch await onDiskThread({ self.look(request, url.text) }) {
        case .answer(let response, let plan):
            if let plan { revalidate(plan) }
            try Self.checkSize(response.body, request)
            return TransportStream(response.reply)
        case .rejection(let error):
            throw error
        case .exchange(let plan):
            configuration.onEvent(request, .miss)
            return try await openExchange(plan)
        }
    }

    private func openExchange(_ plan: Plan) async throws(TransportError) -> TransportStream {
        let ticket = issueTicket(plan.key)
        var isTicketGiven = false
        defer { if !isTicketGiven { takeBack(ticket) } }
        let requestedAt = configuration.clock.now
        let stream: TransportStream
        do throws(TransportError) {
            stream = try await transport.open(plan.conditional)
        } catch {
            return TransportStream(try await staleFallback(plan, for: error, ticket).reply)
        }
        var fields = stream.fields
        configuration.correctFields(&fields, plan.request.url)
        let isRedirect = Redirection.next(after: plan.request, stream.status, fields) != nil
        if stream.status == .notModified || stream.status.isServerFailure || isRedirect {
            // These responses are short: they are processed without streaming. The content of a redirect may never be read.
            do throws(TransportError) {
                let reply = try await stream.whole()
                let response = try await onDiskThread { () async throws(TransportError) in
                    try await self.settle(plan, reply, requestedAt, ticket)
                }
                return TransportStream(response.reply)
            } catch {
                guard isRedirect else {
                    return TransportStream(try await staleFallback(plan, for: error, ticket).reply)
                }
                // It is followed without its content. Who does not follow it gets the error.
                var redirect = Self.rewritten(stream, fields)
                redirect.body = TransportStream.Body { () throws(TransportError) -> [UInt8]? in throw error }
                return redirect
            }
        }
        // A response after a redirect belongs to another URL.
        if stream.redirectedTo != nil
            || HTTPCacheStorageDecision.rejection(plan.request, stream.status, fields) != nil
        {
            let head = TransportResponse(status: stream.status, fields: fields)
            await onDiskThread { self.keep(nil, head, plan, ticket) }
            return Self.rewritten(stream, fields)
        }
        isTicketGiven = true
        let tee = HTTPCacheTee(self, plan, stream, requestedAt: requestedAt, ticket: ticket)
        return TransportStream(status: stream.status, fields: fields, body: tee.body)
    }

    static func rewritten(_ stream: TransportStream, _ fields: Fields) -> TransportStream {
        var rewritten = stream
        rewritten.fields = fields
        return rewritten
    }
}

/// Passes content on and collects a copy, which is processed at the end like a response that was not streamed.
private final class HTTPCacheTee: Sendable {
    private let cache: HTTPCache
    private let plan: HTTPCache.Plan
    private let stream: TransportStream
    private let requestedAt: WallTime
    private let ticket: HTTPCacheTicket
    /// The content so far; nil if it is too large to be stored, or has ended or was truncated.
    private let copy = Mutex<[UInt8]?>([])

    init(
        _ cache: HTTPCache,
        _ plan: HTTPCache.Plan,
        _ stream: TransportStream,
        requestedAt: WallTime,
        ticket: HTTPCacheTicket
    ) {
        self.cache = cache
        self.plan = plan
        self.stream = stream
        self.requestedAt = requestedAt
        self.ticket = ticket
    }

    deinit { cache.takeBack(ticket) }

    var body: TransportStream.Body { TransportStream.Body { () async throws(TransportError) in try await self.next() } }

    private func next() async throws(TransportError) -> [UInt8]? {
        let piece: [UInt8]?
        do throws(TransportError) {
            piece = try await stream.body.next()
        } catch {
            copy.withLock { $0 = nil }
            throw error
        }
        var reply = TransportResponse(status: stream.status, fields: stream.fields)
        guard let piece else {
            guard let content = copy.withLock({ $0.take() }) else { return nil }
            reply.body = content
            _ = try await cache.onDiskThread {
                [cache, plan, reply, requestedAt, ticket] () async throws(TransportError) in
                try await cache.settle(plan, reply, requestedAt, ticket)
            }
            return nil
        }
        let maximum = max(0, cache.configuration.policy.bodyBytesMaximum)
        let isTooLarge = copy.withLock { copy in
            // Taken, so that appending does not copy.
            guard var bytes = copy.take() else { return false }
            bytes += piece
            if bytes.count <= maximum { copy = bytes }
            return copy == nil
        }
        if isTooLarge { await cache.onDiskThread { [reply] in self.cache.keep(nil, reply, self.plan, self.ticket) } }
        return piece
    }
}
