import LarderEvents
import LarderHTTP
import LarderTime
import LarderTransport

/// Exchanges with the server and their effect on the storage.
extension HTTPCache {
    /// Sends a plan's request with its conditions and processes the response.
    func exchange(_ plan: Plan) async throws(TransportError) -> HTTPCache.Response {
        let ticket = issueTicket(plan.key, plan.file?.mayStore)
        defer { takeBack(ticket) }
        let requestedAt = configuration.clock.now
        do throws(TransportError) {
            let reply: TransportResponse
            if let file = plan.file {
                reply = try await receive(plan, file, ticket)
            } else {
                reply = try await transport.send(plan.conditional)
            }
            return try await onDiskThread { () async throws(TransportError) in
                try await self.settle(plan, reply, requestedAt, ticket)
            }
        } catch {
            return try await staleFallback(plan, for: error, ticket)
        }
    }

    /// Returns a stored response for a transport failure, or throws the failure if none may be used.
    func staleFallback(
        _ plan: Plan,
        for error: TransportError,
        _ ticket: HTTPCacheTicket
    ) async throws(TransportError) -> HTTPCache.Response {
        switch error.kind {
        case .unsent, .noReply, .timedOut: break
        case .cancelled, .invalidRequest, .unusable: throw error
        }
        let response = await onDiskThread {
            self.staleFallback(
                plan,
                .transportFailed(error.code),
                "\(error.code.rawValue): \(error.description)",
                ticket,
                isDisconnected: true
            )
        }
        guard let response else { throw error }
        return response
    }

    /// Returns a stored response for an unusable response; nil if it may not be used.
    func staleFallback(
        _ plan: Plan,
        _ reason: HTTPCache.StaleReason,
        _ failure: String,
        _ ticket: HTTPCacheTicket,
        isDisconnected: Bool = false
    ) -> HTTPCache.Response? {
        // As it is now: a change may have made it invalid since the request began, also in another process. Without a valid ticket the
        // cache may have missed one.
        let entries = storedEntries(plan.key)
        guard ticket.isValid, let known = plan.entry,
            let entry = entries.first(where: { $0.bodyID == known.bodyID && $0.selectors == known.selectors }),
            let explanation = HTTPCacheDecision.staleFallback(
                entry,
                for: plan.request.fields,
                now: configuration.clock.now,
                policy: configuration.policy,
                isDisconnected: isDisconnected
            ), let body = storedBody(entry, plan.key, plan.file)
        else { return nil }
        let response = answer(entry, body, plan.request, .stale(reason), "\(failure) \(explanation)")
        return response.body.count <= plan.request.bodyLimit ? response : nil
    }

    /// Processes a response: stores it, updates the stored one, or does neither.
    func settle(
        _ plan: Plan,
        _ reply: TransportResponse,
        _ requestedAt: WallTime,
        _ ticket: HTTPCacheTicket
    ) async throws(TransportError) -> HTTPCache.Response {
        let receivedAt = configuration.clock.now
        var reply = reply
        configuration.correctFields(&reply.fields, plan.request.url)
        if let target = reply.redirectedTo {
            return try await settleRedirected(plan, reply, target, ticket)
        }
        if reply.status == .notModified {
            return try await settleNotModified(plan, reply, requestedAt, receivedAt, ticket)
        }
        if let file = plan.file, !file.accepts(reply.status, reply.body, false) {
            // Damaged content or a page of the network, such as a captive portal, does not affect the storage.
            discardParts(of: file)
            let failure =
                "Not stored: the content is not what is taken here (\(reply.fields[.contentType] ?? "no type"))."
            return staleFallback(plan, .unexpectedContent, failure, ticket, isDisconnected: true)
                ?? response(reply, "\(plan.explanation) \(failure)")
        }
        if reply.status.isServerFailure {
            let failure = "The server answered \(reply.status.code)."
            if let response = staleFallback(plan, .serverFailed(reply.status), failure, ticket) { return response }
        }
        if plan.request.method == .head {
            settleHead(plan, reply, requestedAt, receivedAt, ticket)
            return response(reply, plan.explanation)
        }
        let decision = HTTPCacheStorageDecision.decide(
            request: plan.request,
            response: reply,
            requestedAt: requestedAt,
            receivedAt: receivedAt,
            policy: configuration.policy
        )
        // An error is no file, whatever its lifetime is.
        let entry = plan.file != nil && reply.status.code >= 400 ? nil : decision.entry
        keep(entry, reply, plan, ticket)
        var response = response(reply, "\(plan.explanation) \(decision.explanation)")
        response.entry = entry
        return response
    }

    /// Processes a response after a redirect that the transport followed. It belongs to another URL, so nothing is
    /// stored or confirmed under this one.
    private func settleRedirected(
        _ plan: Plan,
        _ reply: TransportResponse,
        _ target: String,
        _ ticket: HTTPCacheTicket
    ) async throws(TransportError) -> HTTPCache.Response {
        if reply.status == .notModified, plan.conditions.count > 0 {
            return try await askAgain(
                plan,
                "The 304 came from \(HTTPURL.redacted(target)), to which it was redirected."
            )
        }
        if reply.status.isServerFailure {
            let failure = "The server answered \(reply.status.code)."
            if let response = staleFallback(plan, .serverFailed(reply.status), failure, ticket) { return response }
        }
        keep(nil, reply, plan, ticket)
        return response(
            reply,
            "\(plan.explanation) Not stored: it came from \(HTTPURL.redacted(target)) by a redirect."
        )
    }

    func response(_ reply: TransportResponse, _ explanation: String) -> HTTPCache.Response {
        HTTPCache.Response(reply: reply, source: .network, explanation: explanation)
    }

    // MARK: 304

    private func settleNotModified(
        _ plan: Plan,
        _ reply: TransportResponse,
        _ requestedAt: WallTime,
        _ receivedAt: WallTime,
        _ ticket: HTTPCacheTicket
    ) async throws(TransportError) -> HTTPCache.Response {
        let isOwn = plan.conditions.count == 0
        let confirmed = HTTPCacheValidation.entry(
            confirmedBy: reply.fields,
            plan.entry,
            plan.entries,
            plan.request.fields,
            configuration.policy
        )
        guard let confirmed, plan.request.method == .get else {
            // A 304 to the caller's own conditions is returned to the caller; another one matches no stored response.
            if isOwn { return response(reply, plan.explanation) }
            return try await askAgain(plan, "The 304 matches nothing that is stored (RFC 9111 §4.3.4).")
        }
        // A 304 to the caller's own conditions identifies a stored response only by its entity tag.
        if isOwn, reply.fields[.etag] == nil { return response(reply, plan.explanation) }
        let renewed = HTTPCacheValidation.freshened(
            confirmed,
            by: reply.fields,
            for: plan.request.fields,
            requestedAt: requestedAt,
            receivedAt: receivedAt,
            policy: configuration.policy
        )
        let body = storedBody(confirmed, plan.key, plan.file)
        // The request may forbid storing, not the storage.
        let mayStay = HTTPCacheValidation.mayStay(renewed, configuration.policy)
        if body != nil, !CacheControl(request: plan.request.fields).noStore {
            change(plan.key) { entries in
                guard ticket.mayStore, entries.contains(where: { $0.bodyID == confirmed.bodyID }),
                    !entries.contains(where: { renewed.isOutdated(by: $0, now: receivedAt) })
                else { return }
                // A confirmed entry with other selectors is kept beside the new one.
                entries.removeAll { $0.selectors == renewed.selectors }
                if mayStay { configuration.policy.add(renewed, to: &entries) }
            }
        }
        if isOwn { return response(reply, plan.explanation) }
        guard let body else { return try await askAgain(plan, "The content of what the 304 confirms is gone.") }
        var response = answer(
            renewed,
            body,
            plan.request,
            .revalidated,
            "\(plan.explanation) A 304 confirmed it (RFC 9111 §4.3.4)."
        )
        if !mayStay { response.entry = nil }
        try Self.checkSize(response.body, plan.request)
        return response
    }

    /// Sends the request again without conditions.
    private func askAgain(_ plan: Plan, _ reason: String) async throws(TransportError) -> HTTPCache.Response {
        try await exchange(
            Plan(
                request: plan.request,
                key: plan.key,
                explanation: "\(plan.explanation) \(reason)",
                file: plan.file
            )
        )
    }

    // MARK: Keeping

    /// Stores a response in place of entries for the same requests, or removes those that it invalidates.
    func keep(_ entry: HTTPCacheEntry?, _ reply: TransportResponse, _ plan: Plan, _ ticket: HTTPCacheTicket) {
        let old = plan.entry
        guard let entry else {
            let isNews = (200..<300).contains(reply.status.code) || [404, 410].contains(reply.status.code)
            guard old != nil || plan.part != nil, isNews, reply.status != .partialContent else { return }
            change(plan.key) { entries in
                guard ticket.mayStore else { return }
                entries.removeAll { $0.isPart || ($0.bodyID == old?.bodyID && $0.selectors == old?.selectors) }
            }
            return
        }
        // A failure does not replace a stored response.
        if reply.status.isServerFailure, old != nil { return }
        let now = configuration.clock.now
        change(plan.key, body: reply.body) { entries in
            guard ticket.mayStore else { return }
            entries.removeAll { $0.isPart && $0.selectors == entry.selectors }
            if entries.contains(where: { entry.isOutdated(by: $0, now: now) }) { return }
            entries.removeAll { $0.selectors == entry.selectors }
            if let old { entries.removeAll { $0.bodyID == old.bodyID && $0.selectors == old.selectors } }
            configuration.policy.add(entry, to: &entries)
        }
    }

    /// Applies the response to a `HEAD` to the stored response: it confirms it and updates its fields, or invalidates it (RFC 9111 §4.3.5).
    private func settleHead(
        _ plan: Plan,
        _ reply: TransportResponse,
        _ requestedAt: WallTime,
        _ receivedAt: WallTime,
        _ ticket: HTTPCacheTicket
    ) {
        guard reply.status == .ok, let entry = plan.entry, !CacheControl(request: plan.request.fields).noStore else {
            return
        }
        let isCurrent = entry.status == .ok && HTTPCacheValidation.head(reply.fields, confirms: entry)
        let renewed = HTTPCacheValidation.freshened(
            entry,
            by: reply.fields,
            for: plan.request.fields,
            requestedAt: requestedAt,
            receivedAt: receivedAt,
            policy: configuration.policy
        )
        change(plan.key) { entries in
            guard ticket.mayStore, let index = entries.firstIndex(of: entry) else { return }
            if !isCurrent {
                entries[index].isInvalidated = true
            } else if HTTPCacheValidation.mayStay(renewed, configuration.policy) {
                entries[index] = renewed
            } else {
                entries.remove(at: index)
            }
        }
    }
}
