import LarderHTTP
import LarderTime

/// A file, whole and checked, and where it came from.
struct LoadedImage: Sendable {
    let bytes: [UInt8]
    let origin: ImageOrigin
}

/// A part of a file that arrived before the download broke off, which the server will go on from.
struct PartialImage: Sendable {
    var bytes: [UInt8] = []
    var entityTag: EntityTag?
    /// The length of the whole, where the server has said it.
    var length: Int?
    /// The fields of the reply that began it.
    var fields = Fields()

    /// Whether the rest can be asked for: only a strong tag promises that the parts are of one file (RFC 9110 §13.1.5).
    var isResumable: Bool { !bytes.isEmpty && entityTag.map { !$0.isWeak } == true }
}

/// Fetches one file: from disk, from a server, from the server where it broke off. A value without state of its own.
struct ImageLoader: Sendable {
    let transport: any Transport
    let store: ImageStore
    let decoders: ImageDecoders
    let retry: ImageRetryPolicy
    let clock: any WallClock
    let uptime: any MonotonicClock
    let standardLifetime: Duration
    let bytesMaximum: Int
    let report: @Sendable (() -> ImageEvent) -> Void

    /// - Parameters:
    ///   - partial: what an earlier download left.
    ///   - keep: takes what this one leaves when it fails.
    ///   - progress: told of what has arrived so far, whenever more has.
    func load(
        _ key: ImageSourceKey,
        _ options: ImageCacheOptions,
        epoch: Int,
        partial: PartialImage?,
        keep: (PartialImage) -> Void,
        progress: ([UInt8], Int?) -> Void
    ) async throws(ImageError) -> LoadedImage {
        let stored = options.contains(.skipDiskRead) ? nil : checked(store.read(key), key)
        if let stored, options.contains(.onlyCached) || isFresh(stored) {
            report { .hit(url: key.url, tier: .disk) }
            return LoadedImage(bytes: stored.bytes, origin: .disk)
        }
        guard !options.contains(.onlyCached) else {
            throw ImageError(.notCached, "\(key.url) is not in the cache. Ask without .onlyCached to fetch it.")
        }
        do {
            return try await download(key, options, epoch, stored, partial, keep, progress)
        } catch {
            // What the server says is gone is gone; otherwise what there is is better than nothing.
            guard let stored, error.code != .cancelled, error.status != 404, error.status != 410 else { throw error }
            report { .staleUsed(url: key.url, because: error) }
            return LoadedImage(bytes: stored.bytes, origin: .disk)
        }
    }

    private func isFresh(_ image: StoredImage) -> Bool {
        let now = clock.now
        // A clock that was set back makes nothing fresh.
        return now >= image.recordedAt && now < image.expiresAt
    }

    /// What is on disk, if it is whole.
    private func checked(_ stored: StoredImage?, _ key: ImageSourceKey) -> StoredImage? {
        guard let stored else { return nil }
        do {
            try decoders.decoder(for: stored.bytes).verify(stored.bytes)
            return stored
        } catch {
            report { .damaged(url: key.url, origin: .disk) }
            store.remove(key)
            return nil
        }
    }

    // MARK: Network

    private func download(
        _ key: ImageSourceKey,
        _ options: ImageCacheOptions,
        _ epoch: Int,
        _ stored: StoredImage?,
        _ earlier: PartialImage?,
        _ keep: (PartialImage) -> Void,
        _ progress: ([UInt8], Int?) -> Void
    ) async throws(ImageError) -> LoadedImage {
        var partial = earlier ?? PartialImage()
        var (tries, idle) = (0, 0)
        let begun = uptime.uptime
        while true {
            tries += 1
            if !partial.isResumable { partial = PartialImage() }
            let had = partial.bytes.count
            report { .downloadStarted(url: key.url, offset: had) }
            let failure: ImageError
            do throws(ImageError) {
                switch try await exchange(key, stored, &partial, progress) {
                case .notModified:
                    guard var stored else {
                        throw ImageError(.invalid, "The server answered 304 to what was no condition.")
                    }
                    report { .revalidated(url: key.url, bytesSaved: stored.bytes.count) }
                    let fields = partial.fields
                    stored.recordedAt = clock.now
                    stored.expiresAt = clock.now + ImageFreshness(fields, standard: standardLifetime).lifetime
                    if !options.contains(.skipDiskWrite) { store.write(stored, for: key, epoch: epoch) }
                    return LoadedImage(bytes: stored.bytes, origin: .disk)
                case .complete:
                    try verify(partial)
                    let count = partial.bytes.count
                    report { .downloadFinished(url: key.url, byteCount: count, duration: uptime.uptime - begun) }
                    save(partial, key, options, epoch)
                    return LoadedImage(bytes: partial.bytes, origin: .network)
                }
            } catch {
                failure = error
            }
            if failure.code == .damaged {
                report { .damaged(url: key.url, origin: .network) }
                partial = PartialImage()
            }
            idle = partial.isResumable && partial.bytes.count > had ? 0 : idle + 1
            let isFinal = Task.isCancelled || !Self.isWorthTrying(failure) || tries >= retry.triesMaximum
            if isFinal || idle >= retry.triesWithoutProgress {
                if partial.isResumable { keep(partial) }
                throw Task.isCancelled ? .cancelled : failure
            }
            let attempt = tries + 1
            report { .retried(url: key.url, attempt: attempt, because: failure) }
            do {
                if idle > 0 { try await retry.wait(retry.delay(idle)) }
            } catch {
                if partial.isResumable { keep(partial) }
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

    private enum Reply {
        case complete
        case notModified
    }

    /// Sends one request and adds what comes to the part that is there. What throws leaves in `partial` what can be kept.
    private func exchange(
        _ key: ImageSourceKey,
        _ stored: StoredImage?,
        _ partial: inout PartialImage,
        _ progress: ([UInt8], Int?) -> Void
    ) async throws(ImageError) -> Reply {
        var fields = key.fields
        if fields[.accept] == nil { fields.add(.accept, "image/*") }
        if partial.isResumable, let tag = partial.entityTag {
            fields.set(.range, "bytes=\(partial.bytes.count)-")
            fields.set(.ifRange, tag.description)
        } else if let tag = stored?.entityTag {
            fields.set(.ifNoneMatch, tag.description)
        }
        do {
            let request = TransportRequest(url: key.url, fields: fields, bodyLimit: bytesMaximum)
            let stream = try await transport.open(request)
            switch stream.status.code {
            case 200: partial = Self.beginning(stream.fields)
            case 206:
                guard try Self.continues(partial, stream.fields) else {
                    partial = PartialImage()
                    throw ImageError(.interrupted, "\(key.url) has changed while it was fetched. It is fetched anew.")
                }
            case 304 where stored != nil && partial.bytes.isEmpty:
                partial.fields = stream.fields
                return .notModified
            case let code:
                // The part may be of a file that is not there any more.
                if code == 416 { partial = PartialImage() }
                throw ImageError(.status, "\(key.url) was answered with \(code).", status: code)
            }
            for try await piece in stream.body {
                guard piece.count <= bytesMaximum - partial.bytes.count else {
                    partial = PartialImage()
                    throw ImageError(.tooLarge, "\(key.url) has more than \(bytesMaximum) bytes.")
                }
                partial.bytes += piece
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
            throw ImageError(.interrupted, "\(key.url) ended after \(partial.bytes.count) of \(length) bytes.")
        }
        return .complete
    }

    /// What a whole reply begins.
    private static func beginning(_ fields: Fields) -> PartialImage {
        var partial = PartialImage()
        partial.fields = fields
        // Of a reply that is encoded neither the length nor a range is about the bytes that we get.
        if let encoding = fields[.contentEncoding], encoding.lowercased() != "identity" { return partial }
        partial.length = fields[.contentLength].flatMap { Int($0) }
        partial.entityTag = fields[.etag].flatMap { EntityTag(parsing: $0) }
        return partial
    }

    /// Whether a partial reply (RFC 9110 §15.3.7) goes on just where the part ends, in the same file.
    private static func continues(_ partial: PartialImage, _ fields: Fields) throws(ImageError) -> Bool {
        guard partial.isResumable else { throw ImageError(.invalid, "A part was sent that nobody asked for.") }
        if let tag = fields[.etag].flatMap({ EntityTag(parsing: $0) }), let known = partial.entityTag,
            !tag.stronglyMatches(known)
        {
            return false
        }
        // bytes 100-199/200
        let text = fields[.contentRange] ?? ""
        guard text.lowercased().hasPrefix("bytes ") else { return false }
        let parts = text.dropFirst(6).split(separator: "/")
        let ends = (parts.first ?? "").split(separator: "-")
        guard parts.count == 2, ends.count == 2, Int(ends[0]) == partial.bytes.count else { return false }
        if parts[1] == "*" { return true }
        guard let length = Int(parts[1]), let last = Int(ends[1]), last < length else { return false }
        return partial.length == nil || partial.length == length
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
            try decoders.decoder(for: whole.bytes).verify(whole.bytes)
        } catch {
            // A file that is whole by its length and not by itself is damaged, not truncated.
            throw ImageError(error)
        }
    }

    private func save(
        _ whole: PartialImage,
        _ key: ImageSourceKey,
        _ options: ImageCacheOptions,
        _ epoch: Int
    ) {
        let freshness = ImageFreshness(whole.fields, standard: standardLifetime)
        guard freshness.isStorable, !options.contains(.skipDiskWrite) else { return }
        let now = clock.now
        let image = StoredImage(
            bytes: whole.bytes,
            entityTag: whole.entityTag ?? whole.fields[.etag].flatMap { EntityTag(parsing: $0) },
            expiresAt: now + freshness.lifetime,
            recordedAt: now
        )
        store.write(image, for: key, epoch: epoch)
    }
}
