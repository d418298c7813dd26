package import LarderHTTP
import LarderTime
package import LarderTransport
import Synchronization

/// One file that is fetched through the cache by a caller that merges equal requests, checks the content and retries.
///
/// What has arrived when a try breaks off is kept here, and stored if the response may be: the next try, with this value or in another
/// process, asks for the rest.
package struct HTTPCacheFile: Sendable {
    /// The key of its stored responses, such as its URL.
    let key: String
    let arrived = Arrived()
    /// Whether stored responses may be used.
    package var readsStorage = true
    /// Whether no request may be sent.
    package var isOffline = false
    /// Whether a stale response is no answer, although it could be validated in the background.
    package var mustValidate = false
    /// Whether responses may be stored. Asked within each transaction.
    package var mayStore: @Sendable () -> Bool = { true }
    /// Whether content is whole. Asked before a response is stored or returned, and after it was read (`isStored`).
    package var accepts: @Sendable (Status, _ content: [UInt8], _ isStored: Bool) -> Bool = { _, _, _ in true }
    /// Called before each request with the number of bytes that are not requested again.
    package var onRequest: @Sendable (Int) -> Void = { _ in }
    /// Called with the bytes so far whenever more arrive, and with the length of the file if it is known.
    package var onBytes: @Sendable ([UInt8], Int?) -> Void = { _, _ in }

    package init(key: String) { self.key = key }

    /// The number of bytes that have arrived and are not requested again.
    package var arrivedCount: Int { arrived.part.withLock { $0?.bytes.count ?? 0 } }

    final class Arrived: Sendable {
        let part = Mutex<HTTPCachePart?>(nil)
    }
}

/// The beginning of a file, from a download that broke off.
struct HTTPCachePart: Sendable {
    /// The fields of the first response, updated by those of later ranges (RFC 9110 §15.3.7.3, RFC 9111 §3.4). Its status is 206.
    var head: HTTPCacheEntry
    var bytes: [UInt8] = []
    /// The number of bytes that are stored.
    var storedCount = 0

    /// The length of the whole file; nil if the server has not stated it.
    var length: Int? { isCoded ? nil : head.fields[.contentLength].flatMap { Int($0) } }

    /// Whether the rest can be requested: only a strong tag guarantees that the parts are of one file (RFC 9110 §13.1.5).
    var isResumable: Bool { !bytes.isEmpty && !isCoded && head.entityTag.map { !$0.isWeak } == true }

    /// With a content coding, neither the length nor a range counts the bytes that are received here.
    private var isCoded: Bool { head.fields[.contentEncoding].map { $0.lowercased() != "identity" } ?? false }

    /// Whether a partial response continues exactly where this ends, in the same file. A response without its tag, which RFC 9110 §15.3.7
    /// demands, does not: its server may have ignored `If-Range`.
    func isContinued(by fields: Fields) -> Bool {
        guard let range = fields[.contentRange].flatMap({ ContentRange(parsing: $0) }),
            range.bytes.lowerBound == bytes.count,
            let tag = fields[.etag].flatMap({ EntityTag(parsing: $0) }), let known = head.entityTag,
            tag.stronglyMatches(known)
        else { return false }
        return range.total == nil || length == nil || range.total == length
    }
}

extension HTTPCacheEntry {
    /// Whether it is the beginning of a file: no whole response is stored with this status.
    var isPart: Bool { status == .partialContent }
}

extension HTTPCache {
    /// The received bytes at which a part is first stored; then each time it has doubled, because the process may die at any time.
    package static let partBytesMinimum = 128 << 10

    /// Fetches a file, or serves it as `response(for:)` would. Redirects are returned, and stale responses are not validated.
    package func response(
        for request: TransportRequest,
        _ file: HTTPCacheFile
    ) async throws(TransportError) -> HTTPCache.Response {
        switch await onDiskThread({ self.look(request, file.key, file) }) {
        case .answer(let response, _):
            try Self.checkSize(response.body, request)
            return response
        case .rejection(let error): throw error
        case .exchange(let plan): return try await exchange(plan)
        }
    }

    /// Removes stored content of a key.
    nonisolated(nonsending) package func remove(contentID: String, key: String) async {
        await onDiskThread { self.change(key) { $0.removeAll { $0.bodyID == contentID } } }
    }

    /// The beginning of a file that has arrived before; nil if there is none.
    func part(of file: HTTPCacheFile, _ request: TransportRequest, _ entries: [HTTPCacheEntry]) -> HTTPCachePart? {
        if let part = file.arrived.part.withLock({ $0 }) { return part }
        let selecting = configuration.policy.selecting(request.fields)
        guard let head = entries.last(where: { $0.isPart && $0.matches(selecting) }),
            let body = storedBody(head, file.key)
        else { return nil }
        return HTTPCachePart(head: head, bytes: body, storedCount: body.count)
    }

    /// Receives the response to a plan for a file, or the rest of the file.
    func receive(
        _ plan: Plan,
        _ file: HTTPCacheFile,
        _ ticket: HTTPCacheTicket
    ) async throws(TransportError) -> TransportResponse {
        var request = plan.conditional
        if let part = plan.part, let tag = part.head.entityTag {
            request = plan.request
            request.fields.set(.range, "bytes=\(part.bytes.count)-")
            request.fields.set(.ifRange, tag.description)
        }
        file.onRequest(plan.part?.bytes.count ?? 0)
        let requestedAt = configuration.clock.now
        let stream = try await transport.open(request)
        let receivedAt = configuration.clock.now
        var part: HTTPCachePart
        if var known = plan.part, stream.status == .partialContent || stream.status == .rangeNotSatisfiable {
            guard known.isContinued(by: stream.fields) else {
                // The file has changed.
                await onDiskThread { self.discardParts(of: file) }
                var whole = plan
                whole.part = nil
                return try await receive(whole, file, ticket)
            }
            known.head = HTTPCacheValidation.freshened(
                known.head,
                by: stream.fields,
                for: request.fields,
                requestedAt: requestedAt,
                receivedAt: receivedAt,
                policy: configuration.policy
            )
            if let range = stream.fields[.contentRange].flatMap({ ContentRange(parsing: $0) }), let total = range.total
            {
                known.head.fields.set(.contentLength, "\(total)")
            }
            part = known
        } else if stream.status == .ok {
            let head = HTTPCacheEntry(
                bodyID: "",
                bodyCount: 0,
                status: .partialContent,
                fields: stream.fields,
                selectors: [],
                requestedAt: requestedAt,
                receivedAt: receivedAt
            )
            part = HTTPCachePart(head: head)
        } else {
            do { return try await stream.whole() } catch {
                // The head of a redirect or of an error says all that is needed.
                guard error.code != .cancelled else { throw error }
                return TransportResponse(status: stream.status, fields: stream.fields)
            }
        }
        do throws(TransportError) {
            while let piece = try await stream.body.next() {
                guard piece.count <= plan.request.bodyLimit - part.bytes.count else {
                    part.bytes = []
                    await onDiskThread { self.discardParts(of: file) }
                    throw TransportError(.tooLarge, "The file has more than \(plan.request.bodyLimit) bytes.")
                }
                part.bytes += piece
                if part.bytes.count >= max(Self.partBytesMinimum, 2 * part.storedCount) {
                    await store(&part, of: file, plan, ticket)
                }
                file.onBytes(part.bytes, part.length)
            }
            if let length = part.length, part.bytes.count < length {
                throw TransportError(.interrupted, "The file ended after \(part.bytes.count) of \(length) bytes.")
            }
        } catch {
            await store(&part, of: file, plan, ticket)
            file.arrived.part.withLock { [part] in $0 = part.isResumable ? part : nil }
            throw error
        }
        file.arrived.part.withLock { $0 = nil }
        var reply = TransportResponse(status: .ok, fields: part.head.fields, body: part.bytes)
        reply.redirectedTo = stream.redirectedTo
        return reply
    }

    /// Stores the beginning of a file if the rest can be requested and its response may be stored.
    private func store(
        _ part: inout HTTPCachePart,
        of file: HTTPCacheFile,
        _ plan: Plan,
        _ ticket: HTTPCacheTicket
    ) async {
        guard part.isResumable, part.bytes.count > part.storedCount, ticket.mayStore else { return }
        var response = TransportResponse(status: .ok, fields: part.head.fields, body: part.bytes)
        response.fields.remove(.contentLength)
        let decision = HTTPCacheStorageDecision.decide(
            request: plan.request,
            response: response,
            requestedAt: part.head.requestedAt,
            receivedAt: part.head.receivedAt,
            policy: configuration.policy
        )
        guard var entry = decision.entry else {
            if part.storedCount > 0 { await onDiskThread { self.discardParts(of: file) } }
            return
        }
        entry.status = .partialContent
        if let length = part.length { entry.fields.set(.contentLength, "\(length)") }
        part.storedCount = part.bytes.count
        await onDiskThread { [entry, bytes = part.bytes] in
            self.change(file.key, body: bytes) { entries in
                // A later download of the whole file may have ended.
                guard ticket.mayStore,
                    !entries.contains(where: {
                        !$0.isPart && $0.selectors == entry.selectors && $0.requestedAt >= entry.requestedAt
                    })
                else { return }
                entries.removeAll { $0.isPart && $0.selectors == entry.selectors }
                self.configuration.policy.add(entry, to: &entries)
            }
        }
    }

    func discardParts(of file: HTTPCacheFile) {
        file.arrived.part.withLock { $0 = nil }
        change(file.key) { entries in entries.removeAll(where: \.isPart) }
    }
}
