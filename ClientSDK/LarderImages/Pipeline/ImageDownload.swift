import LarderEvents
import LarderHTTP
import LarderHTTPCache
import LarderTime
import LarderTransport

/// One download with its retries: requests, resumes, verifies and stores.
struct ImageDownload {
    private enum Reply {
        case complete
        case redirected(ImageRedirect)
        case notModified(Fields, requestedAt: WallTime, receivedAt: WallTime)
    }

    private let loader: ImageLoader
    private let order: ImageLoader.Order
    private let stored: ImageLoader.Stored?
    private let entries: [HTTPCacheEntry]
    private var conditions: Fields
    private var partial = PartialImage()
    /// Whether parts may be stored; false until a response head allows it.
    private var mayKeep = false
    /// Whether caches on the way are bypassed, because what they sent was damaged.
    private var reloads: Bool

    private var url: String { order.key.url }

    /// - Parameters:
    ///   - stored: the response that is validated.
    ///   - entries: all stored responses, any of which may be confirmed.
    ///   - conditions: the condition fields of the request.
    init(
        _ loader: ImageLoader,
        _ order: ImageLoader.Order,
        _ stored: ImageLoader.Stored?,
        _ entries: [HTTPCacheEntry],
        _ conditions: Fields
    ) {
        self.loader = loader
        self.order = order
        self.stored = stored
        self.entries = entries
        self.conditions = conditions
        reloads = order.options.contains(.mustReload)
    }

    /// Resumes an earlier download whose part is on disk. What is left when it fails is kept there.
    mutating func run(_ progress: ([UInt8], Int?) -> Void) async throws(ImageError) -> ImageReply {
        if !order.options.contains(.skipDiskRead) { partial = loader.store.part(order.key) ?? PartialImage() }
        mayKeep = partial.isResumable && mayStore(partial.fields)
        var (tries, idle) = (0, 0)
        let begun = loader.configuration.uptime.uptime
        var progressed = begun
        while true {
            tries += 1
            if !partial.isResumable { partial = PartialImage() }
            let had = partial.bytes.count
            loader.report { [url, order] in .downloadStarted(url: url, offset: had, isPrefetch: order.isPrefetch()) }
            let failure: ImageError
            do throws(ImageError) {
                switch try await exchange(progress) {
                case .redirected(let redirect): return .redirect(redirect)
                case .notModified(let fields, let requestedAt, let receivedAt):
                    if let reply = confirmed(fields, requestedAt, receivedAt) { return reply }
                    // It confirms nothing that is stored here: the request is repeated without conditions.
                    conditions = Fields()
                    guard tries < loader.configuration.triesMaximum else {
                        throw ImageError(
                            .invalid,
                            "\(url) was answered with 304, although the request had no condition."
                        )
                    }
                    continue
                case .complete:
                    try verify(partial)
                    return .picture(finished(loader.configuration.uptime.uptime - begun))
                }
            } catch {
                failure = error
            }
            if failure.code == .damaged {
                loader.report { [url] in .damaged(url: url, origin: .network) }
                drop()
                reloads = true
            }
            let now = loader.configuration.uptime.uptime
            if partial.isResumable, partial.bytes.count > had {
                (idle, progressed) = (0, now)
            } else {
                idle += 1
            }
            let (asked, elapsed) = (failure.retryAfter ?? .zero, now - progressed)
            guard !Task.isCancelled, failure.isTransient,
                let wait = wait(idle: idle, tries: tries, asked: asked, elapsed: elapsed)
            else {
                keepPart()
                throw Task.isCancelled ? .cancelled : failure
            }
            let attempt = tries + 1
            loader.report { [url] in .retried(url: url, attempt: attempt, because: failure) }
            do {
                if idle > 0 { try await loader.configuration.uptime.sleep(until: now + wait) }
            } catch {
                keepPart()
                throw .cancelled
            }
        }
    }

    /// The wait before the next try; nil for no further try.
    private func wait(idle: Int, tries: Int, asked: Duration, elapsed: Duration) -> Duration? {
        let policy = loader.configuration.retry
        guard policy.attemptsMaximum > 1, tries < loader.configuration.triesMaximum, asked <= .seconds(10) else {
            return nil
        }
        guard idle > 0 else { return .zero }
        guard idle < policy.attemptsMaximum else { return nil }
        let wait = policy.backoffMaximum(attempt: idle) * loader.configuration.random() + asked
        return elapsed + wait <= policy.elapsedMaximum ? wait : nil
    }

    // MARK: One exchange

    /// Sends one request and appends the received bytes to the part. After an error the part keeps what can be resumed.
    private mutating func exchange(_ progress: ([UInt8], Int?) -> Void) async throws(ImageError) -> Reply {
        var request = order.request
        // Pictures are compressed already, and a part of coded content could not be resumed.
        if !request.fields.contains(.acceptEncoding) { request.fields.set(.acceptEncoding, "identity") }
        if reloads { request.fields.set(.cacheControl, "no-cache") }
        if partial.isResumable, let tag = partial.entityTag {
            request.fields.set(.range, "bytes=\(partial.bytes.count)-")
            request.fields.set(.ifRange, tag.description)
        } else {
            for field in conditions { request.fields.add(field.name, field.value) }
        }
        do {
            let requestedAt = loader.configuration.clock.now
            let stream = try await loader.configuration.transport.open(request)
            let receivedAt = loader.configuration.clock.now
            if let target = order.key.redirected(stream.status, stream.fields) {
                drop()
                return .redirected(redirect(to: target, stream.status, stream.fields, requestedAt, receivedAt))
            }
            switch stream.status.code {
            case 200:
                drop()
                partial = PartialImage(
                    beginning: stream.fields,
                    requestedAt: requestedAt,
                    receivedAt: receivedAt
                )
                mayKeep = mayStore(stream.fields)
            case 206:
                guard try partial.isContinued(by: stream.fields) else {
                    drop()
                    throw ImageError(.interrupted, "\(url) changed during the download. It is fetched again.")
                }
                partial.renew(by: stream.fields, requestedAt: requestedAt, receivedAt: receivedAt)
                mayKeep = mayStore(partial.fields)
                if !mayKeep { loader.store.removePart(order.key) }
            case 304 where partial.bytes.isEmpty && conditions.count > 0:
                return .notModified(stream.fields, requestedAt: requestedAt, receivedAt: receivedAt)
            case let code:
                // The part may belong to a file that no longer exists.
                if [404, 410, 416].contains(code) { drop() }
                throw ImageError(
                    .status,
                    "\(url) was answered with \(code).",
                    status: code,
                    retryAfter: RetryAfterField.wait(stream.fields, now: receivedAt)
                )
            }
            for try await piece in stream.body {
                guard piece.count <= loader.configuration.bytesMaximum - partial.bytes.count else {
                    drop()
                    throw ImageError(.tooLarge, "\(url) has more than \(loader.configuration.bytesMaximum) bytes.")
                }
                partial.bytes += piece
                // Written early, because the process may die at any time.
                if partial.bytes.count >= max(ImageStore.pieceLength, 2 * partial.keptCount) { keepPart() }
                progress(partial.bytes, partial.length)
            }
        } catch let error as ImageError {
            throw error
        } catch let error as TransportError {
            throw ImageError(error)
        } catch {
            throw ImageError(.interrupted, "\(error)", cause: error)
        }
        if let length = partial.length, partial.bytes.count < length {
            throw ImageError(.interrupted, "\(url) ended after \(partial.bytes.count) of \(length) bytes.")
        }
        return .complete
    }

    // MARK: Parts

    private func mayStore(_ fields: Fields) -> Bool {
        !order.options.contains(.skipDiskWrite)
            && HTTPCacheStorageDecision.rejection(order.request, .ok, fields, loader.configuration.policy) == nil
    }

    private mutating func keepPart() {
        guard mayKeep, partial.length.map({ partial.bytes.count < $0 }) ?? true else { return }
        loader.store.keep(&partial, for: order.key, epoch: order.epoch)
    }

    /// Discards the part, also on disk.
    private mutating func drop() {
        if partial.keptCount > 0 { loader.store.removePart(order.key) }
        partial = PartialImage()
    }

    // MARK: Checking and keeping

    /// Verifies the complete file: its length, and the checks of its format.
    private func verify(_ whole: PartialImage) throws(ImageError) {
        if let length = whole.length, whole.bytes.count != length {
            throw ImageError(.damaged, "\(url) has \(whole.bytes.count) bytes, but the server announced \(length).")
        }
        do {
            try loader.configuration.decoders.decoder(for: whole.bytes).verify(whole.bytes)
        } catch {
            throw error.ofWholeFile
        }
    }

    /// Stores a redirect under the URL that redirects, in place of what was stored there.
    private func redirect(
        to target: ImageSourceKey,
        _ status: Status,
        _ fields: Fields,
        _ requestedAt: WallTime,
        _ receivedAt: WallTime
    ) -> ImageRedirect {
        var fields = fields
        fields.removeAll { $0 == .contentLength || $0 == .contentEncoding }
        let entry = entry(TransportResponse(status: status, fields: fields), requestedAt, receivedAt)
        if !order.options.contains(.skipDiskWrite), entry != nil || stored != nil {
            put(entry, inPlaceOf: stored?.entry, [])
        }
        return entry.flatMap { loader.redirect($0, order) } ?? ImageRedirect(target: target, freshness: nil)
    }

    /// The response that a 304 confirms (RFC 9111 §4.3.4); nil if it is not stored.
    private func confirmed(_ fields: Fields, _ requestedAt: WallTime, _ receivedAt: WallTime) -> ImageReply? {
        let request = order.request
        guard
            let entry = HTTPCacheValidation.entry(
                confirmedBy: fields,
                stored?.entry,
                entries,
                request.fields,
                loader.configuration.policy
            ),
            // An entry whose file cannot be read confirms nothing.
            let bytes = try? entry.bodyID == stored?.entry.bodyID
                ? stored?.bytes : loader.store.body(entry, order.key)
        else { return nil }
        let renewed = HTTPCacheValidation.freshened(
            entry,
            by: fields,
            for: request.fields,
            requestedAt: requestedAt,
            receivedAt: receivedAt,
            policy: loader.configuration.policy
        )
        loader.report { [url] in .revalidated(url: url, bytesSaved: bytes.count) }
        let mayStay =
            HTTPCacheValidation.mayStay(renewed, loader.configuration.policy)
            && !CacheControl(request: request.fields).noStore
        if !order.options.contains(.skipDiskWrite) {
            put(mayStay ? renewed : nil, inPlaceOf: entry, nil)
        }
        if let redirect = loader.redirect(renewed, order) {
            return .redirect(mayStay ? redirect : ImageRedirect(target: redirect.target, freshness: nil))
        }
        return .picture(loader.loaded(mayStay ? renewed : nil, bytes, .disk, order, isOnDisk: mayStay))
    }

    private mutating func finished(_ duration: Duration) -> LoadedImage {
        let count = partial.bytes.count
        loader.report { [url, order] in
            .downloadFinished(url: url, byteCount: count, duration: duration, isPrefetch: order.isPrefetch())
        }
        let response = TransportResponse(status: .ok, fields: partial.fields, body: partial.bytes)
        let entry = entry(response, partial.requestedAt, partial.receivedAt)
        if partial.keptCount > 0 { loader.store.removePart(order.key) }
        let writes = !order.options.contains(.skipDiskWrite)
        if writes, entry != nil || stored != nil { put(entry, inPlaceOf: stored?.entry, partial.bytes) }
        var image = loader.loaded(entry, partial.bytes, .network, order, isOnDisk: writes && entry != nil)
        image.duration = duration
        return image
    }

    /// A response as it is stored; nil if it must not be stored.
    private func entry(
        _ response: TransportResponse,
        _ requestedAt: WallTime,
        _ receivedAt: WallTime
    ) -> HTTPCacheEntry? {
        HTTPCacheStorageDecision.decide(
            request: order.request,
            response: response,
            requestedAt: requestedAt,
            receivedAt: receivedAt,
            policy: loader.configuration.policy
        ).entry
    }

    /// Stores a response in place of the one that matched the same requests, or removes the one that it made outdated.
    private func put(_ entry: HTTPCacheEntry?, inPlaceOf old: HTTPCacheEntry?, _ body: [UInt8]?) {
        let now = loader.configuration.clock.now
        let maximum = max(1, loader.configuration.policy.variantsMaximum)
        loader.store.change(order.key, body: entry == nil ? nil : body, epoch: order.epoch) { entries in
            if let entry, entries.contains(where: { entry.isOutdated(by: $0, now: now) }) { return }
            if let old { entries.removeAll { $0.bodyID == old.bodyID && $0.selectors == old.selectors } }
            guard let entry else { return }
            entries.removeAll { $0.selectors == entry.selectors }
            entries.append(entry)
            if entries.count > maximum { entries.removeFirst(entries.count - maximum) }
        }
    }
}
