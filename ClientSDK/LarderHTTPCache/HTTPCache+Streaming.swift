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
        switch await onDiskThread({ self.look(request, url) }) {
        case .answer(let response, let plan):
            if let plan { revalidate(plan) }
            try Self.checkSize(response.body, request)
            return TransportStream(response.transportResponse)
        case .rejection(let error):
            throw error
        case .exchange(let plan):
            configuration.onEvent(request, .miss)
            return try await openExchange(plan)
        }
    }

    private func openExchange(_ plan: Plan) async throws(TransportError) -> TransportStream {
        let ticket = issueTicket(plan.url.text)
        var isTicketGiven = false
        defer { if !isTicketGiven { takeBack(ticket) } }
        var request = plan.request
        for field in plan.conditions { request.fields.add(field.name, field.value) }
        let requestedAt = configuration.clock.now
        let stream: TransportStream
        do throws(TransportError) {
            stream = try await transport.open(request)
        } catch {
            return TransportStream(try await staleFallback(plan, for: error, ticket).transportResponse)
        }
        var fields = stream.fields
        let rules = rules(plan.request.method, plan.url)
        for rule in rules { rule.rewrite(stream.status, &fields) }
        let isTaken = rules.allSatisfy { $0.accepts(stream.status, fields) }
        let isRedirect = Redirection.next(after: request, stream.status, fields) != nil
        if stream.status == .notModified || stream.status.isServerFailure || isRedirect || !isTaken {
            // These responses are short: they are processed without streaming. The content of a redirect may never be read.
            do throws(TransportError) {
                let reply = try await stream.whole()
                let response = try await onDiskThread { () async throws(TransportError) in
                    try await self.settle(plan, reply, requestedAt, ticket)
                }
                return TransportStream(response.transportResponse)
            } catch {
                return TransportStream(try await staleFallback(plan, for: error, ticket).transportResponse)
            }
        }
        // A response after a redirect belongs to another URL.
        if stream.redirectedTo != nil || rules.contains(where: \.forbidsStorage)
            || HTTPCacheStorageDecision.rejection(plan.request, stream.status, fields, configuration.policy) != nil
        {
            let head = TransportResponse(status: stream.status, fields: fields)
            await onDiskThread { self.keep(nil, head, plan, ticket) }
            return Self.rewritten(stream, fields)
        }
        isTicketGiven = true
        let tee = HTTPCacheTee(self, plan, stream, fields, requestedAt: requestedAt, ticket: ticket)
        return TransportStream(status: stream.status, fields: fields, body: tee.body)
    }

    static func rewritten(_ stream: TransportStream, _ fields: Fields) -> TransportStream {
        TransportStream(status: stream.status, fields: fields, body: stream.body, redirectedTo: stream.redirectedTo)
    }
}

/// Passes content on and collects a copy, which is stored at the end.
final class HTTPCacheTee: Sendable {
    private let cache: HTTPCache
    private let plan: HTTPCache.Plan
    private let stream: TransportStream
    private let fields: Fields
    private let requestedAt: WallTime
    private let receivedAt: WallTime
    private let ticket: HTTPCacheTicket
    /// The content so far.
    private let copy = Mutex(Copy.growing([]))

    private enum Copy {
        case growing([UInt8])
        /// The content is too large to be stored.
        case tooLarge
        /// The content ended or was truncated.
        case over
    }

    init(
        _ cache: HTTPCache,
        _ plan: HTTPCache.Plan,
        _ stream: TransportStream,
        _ fields: Fields,
        requestedAt: WallTime,
        ticket: HTTPCacheTicket
    ) {
        self.cache = cache
        self.plan = plan
        self.stream = stream
        self.fields = fields
        self.requestedAt = requestedAt
        receivedAt = cache.configuration.clock.now
        self.ticket = ticket
    }

    deinit { cache.takeBack(ticket) }

    var body: TransportStream.Body { TransportStream.Body { () async throws(TransportError) in try await self.next() } }

    private func next() async throws(TransportError) -> [UInt8]? {
        let piece: [UInt8]?
        do throws(TransportError) {
            piece = try await stream.body.next()
        } catch {
            copy.withLock { $0 = .over }
            throw error
        }
        let maximum = max(0, cache.configuration.policy.bodyBytesMaximum)
        guard let piece else {
            await cache.onDiskThread { self.store() }
            return nil
        }
        copy.withLock { copy in
            guard case .growing(var bytes) = copy else { return }
            // Released, so that appending does not copy.
            copy = .tooLarge
            guard bytes.count + piece.count <= maximum else { return }
            bytes += piece
            copy = .growing(bytes)
        }
        return piece
    }

    private func store() {
        let last = copy.withLock { copy in
            defer { copy = .over }
            return copy
        }
        let content: [UInt8]
        switch last {
        case .over: return
        case .tooLarge: return cache.keep(nil, TransportResponse(status: stream.status, fields: fields), plan, ticket)
        case .growing(let bytes): content = bytes
        }
        let reply = TransportResponse(status: stream.status, fields: fields, body: content)
        let decision = HTTPCacheStorageDecision.decide(
            request: plan.request,
            response: reply,
            requestedAt: requestedAt,
            receivedAt: receivedAt,
            policy: cache.configuration.policy
        )
        cache.keep(decision.entry, reply, plan, ticket)
    }
}
