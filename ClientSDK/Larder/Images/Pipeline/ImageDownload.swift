import LarderHTTP
import LarderTime

/// One download until it is whole, however often it breaks off: tries, goes on, checks, stores.
struct ImageDownload {
    private enum Reply {
        case complete
        case notModified(Fields, requestedAt: WallTime, receivedAt: WallTime)
    }

    private let loader: ImageLoader
    private let order: ImageLoader.Order
    private let stored: ImageLoader.Stored?
    private let entries: [HTTPCacheEntry]
    private var conditions: Fields
    private var partial = PartialImage()
    /// Whether parts may be written down: never before the head of a reply has said so.
    private var mayKeep = false

    private var url: String { order.key.url }

    /// - Parameters:
    ///   - stored: the response that the server is asked about.
    ///   - entries: all that are stored, any of which it may confirm.
    ///   - conditions: what it is asked with.
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
    }

    /// - Parameters:
    ///   - earlier: what is in memory of it.
    ///   - keep: takes what is left when it fails and the disk does not keep it.
    mutating func run(
        _ earlier: PartialImage?,
        _ keep: (PartialImage) -> Void,
        _ progress: ([UInt8], Int?) -> Void
    ) async throws(ImageError) -> LoadedImage {
        let onDisk = order.options.contains(.skipDiskRead) ? nil : loader.store.part(order.key)
        partial = [earlier, onDisk].compactMap { $0 }.max { $0.bytes.count < $1.bytes.count } ?? PartialImage()
        mayKeep = partial.isResumable && mayStore(partial.fields)
        let retry = loader.retry
        var (tries, idle) = (0, 0)
        let begun = loader.uptime.uptime
        while true {
            tries += 1
            if !partial.isResumable { partial = PartialImage() }
            let had = partial.bytes.count
            loader.report { [url] in .downloadStarted(url: url, offset: had) }
            let failure: ImageError
            do throws(ImageError) {
                switch try await exchange(progress) {
                case .notModified(let fields, let requestedAt, let receivedAt):
                    if let image = confirmed(fields, requestedAt, receivedAt) { return image }
                    // It vouches for nothing that is here: asked again, without conditions.
                    conditions = Fields()
                    guard tries < retry.triesMaximum else {
                        throw ImageError(.invalid, "The server answers 304 to what is no condition.")
                    }
                    continue
                case .complete:
                    try verify(partial)
                    return finished(loader.uptime.uptime - begun)
                }
            } catch {
                failure = error
            }
            if failure.code == .damaged {
                loader.report { [url] in .damaged(url: url, origin: .network) }
                drop()
            }
            idle = partial.isResumable && partial.bytes.count > had ? 0 : idle + 1
            let asked = failure.retryAfter ?? .zero
            let isFinal =
                Task.isCancelled || !Self.isWorthTrying(failure) || tries >= retry.triesMaximum
                || asked > retry.retryAfterMaximum
            if isFinal || idle >= retry.triesWithoutProgress {
                leave(keep)
                throw Task.isCancelled ? .cancelled : failure
            }
            let attempt = tries + 1
            loader.report { [url] in .retried(url: url, attempt: attempt, because: failure) }
            do {
                if idle > 0 { try await retry.wait(retry.delay(idle) + asked) }
            } catch {
                leave(keep)
                throw .cancelled
            }
        }
    }

    private static func isWorthTrying(_ error: ImageError) -> Bool {
        switch error.code {
        case .interrupted, .damaged, .offline: true
        case .status: [408, 416, 425, 429, 500, 502, 503, 504].contains(error.status)
        default: false
        }
    }

    // MARK: One exchange

    /// Sends one request and adds what comes to the part that is there. What throws leaves there what can be kept.
    private mutating func exchange(_ progress: ([UInt8], Int?) -> Void) async throws(ImageError) -> Reply {
        var request = order.request
        if partial.isResumable, let tag = partial.entityTag {
            request.fields.set(.range, "bytes=\(partial.bytes.count)-")
            request.fields.set(.ifRange, tag.description)
        } else {
            for field in conditions { request.fields.add(field.name, field.value) }
        }
        do {
            let requestedAt = loader.clock.now
            let stream = try await loader.transport.open(request)
            let receivedAt = loader.clock.now
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
                    throw ImageError(.interrupted, "\(url) has changed while it was fetched. It is fetched anew.")
                }
                partial.renew(by: stream.fields, requestedAt: requestedAt, receivedAt: receivedAt)
                mayKeep = mayStore(partial.fields)
                if !mayKeep { loader.store.removePart(order.key) }
            case 304 where partial.bytes.isEmpty && conditions.count > 0:
                return .notModified(stream.fields, requestedAt: requestedAt, receivedAt: receivedAt)
            case let code:
                // The part may be of a file that is not there any more.
                if [404, 410, 416].contains(code) { drop() }
                throw ImageError(
                    .status,
                    "\(url) was answered with \(code).",
                    status: code,
                    retryAfter: RetryAfterField.wait(stream.fields, now: receivedAt)
                )
            }
            for try await piece in stream.body {
                guard piece.count <= loader.bytesMaximum - partial.bytes.count else {
                    drop()
                    throw ImageError(.tooLarge, "\(url) has more than \(loader.bytesMaximum) bytes.")
                }
                partial.bytes += piece
                // The process may die at any time.
                if mayKeep, partial.bytes.count - partial.keptCount >= ImagePartStore.pieceLength { keepPart() }
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
        !order.options.contains(.skipDiskWrite) && loader.terms.mayStore(order.request, fields)
    }

    @discardableResult private mutating func keepPart() -> Bool {
        guard partial.length.map({ partial.bytes.count < $0 }) ?? true else { return false }
        return loader.store.keep(&partial, for: order.key, epoch: order.epoch)
    }

    /// Begins anew, and leaves nothing on disk.
    private mutating func drop() {
        if partial.keptCount > 0 { loader.store.removePart(order.key) }
        partial = PartialImage()
    }

    private mutating func leave(_ keep: (PartialImage) -> Void) {
        // What says no-store is kept nowhere, in parts neither.
        guard partial.isResumable, loader.terms.mayStore(order.request, partial.fields) else { return }
        if mayKeep, keepPart() { return }
        keep(partial)
    }

    // MARK: Checking and keeping

    /// Whether the whole is what was sent: its length, its digest where the server gave one (RFC 9530), and what the format
    /// itself can tell.
    private func verify(_ whole: PartialImage) throws(ImageError) {
        if let length = whole.length, whole.bytes.count != length {
            throw ImageError(.damaged, "\(whole.bytes.count) bytes came and \(length) were announced.")
        }
        if ImageDigest.contradicts(whole.fields, whole.bytes) {
            throw ImageError(.damaged, "The bytes do not have the digest that was sent with them.")
        }
        do {
            try loader.decoders.decoder(for: whole.bytes).verify(whole.bytes)
        } catch {
            // A file that is whole by its length and not by itself is damaged, not truncated.
            throw ImageError(error)
        }
    }

    /// What a 304 confirms (RFC 9111 §4.3.4); nil where that is not here.
    private func confirmed(_ fields: Fields, _ requestedAt: WallTime, _ receivedAt: WallTime) -> LoadedImage? {
        let request = order.request
        guard
            let entry = HTTPCacheValidation.entry(confirmedBy: fields, stored?.entry, entries, request.fields),
            let bytes = entry.bodyID == stored?.entry.bodyID
                ? stored?.bytes : loader.store.body(entry, order.key)
        else { return nil }
        let renewed = HTTPCacheValidation.freshened(
            entry,
            by: fields,
            for: request.fields,
            requestedAt: requestedAt,
            receivedAt: receivedAt,
            policy: loader.terms.policy
        )
        loader.report { [url] in .revalidated(url: url, bytesSaved: bytes.count) }
        let mayStay = HTTPCacheValidation.mayStay(renewed) && !CacheControl(request: request.fields).noStore
        if !order.options.contains(.skipDiskWrite) {
            put(mayStay ? renewed : nil, inPlaceOf: entry, nil)
        }
        return loader.loaded(mayStay ? renewed : nil, bytes, .disk, order, isOnDisk: mayStay)
    }

    private mutating func finished(_ duration: Duration) -> LoadedImage {
        let count = partial.bytes.count
        loader.report { [url] in .downloadFinished(url: url, byteCount: count, duration: duration) }
        let entry = loader.terms.entry(order.request, partial)
        if partial.keptCount > 0 { loader.store.removePart(order.key) }
        let writes = !order.options.contains(.skipDiskWrite)
        if writes, entry != nil || stored != nil { put(entry, inPlaceOf: stored?.entry, partial.bytes) }
        var image = loader.loaded(entry, partial.bytes, .network, order, isOnDisk: writes && entry != nil)
        image.duration = duration
        return image
    }

    /// Stores a response in place of what suited the same requests, or removes what it has made outdated.
    private func put(_ entry: HTTPCacheEntry?, inPlaceOf old: HTTPCacheEntry?, _ body: [UInt8]?) {
        let now = loader.clock.now
        let maximum = max(1, loader.terms.policy.variantsMaximum)
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
