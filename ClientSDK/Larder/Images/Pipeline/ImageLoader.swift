import LarderHTTP
import LarderTime

/// A file, whole and checked, and where it came from.
struct LoadedImage: Sendable {
    let bytes: [UInt8]
    let origin: ImageOrigin
    /// Names the content; nil where it may be kept nowhere.
    let contentID: String?
    /// Until when its pixels may be shown without a decision.
    let freshness: ImageFreshness?
    /// How long the server took.
    var duration: Duration = .zero
    var isOnDisk: Bool
    /// Whether the server is to be asked meanwhile (RFC 5861 §3).
    var wantsValidation = false
}

/// Fetches one file: from disk, from a server, from the server where it broke off. A value without state of its own.
struct ImageLoader: Sendable {
    /// What is to be loaded, and what is known of it.
    struct Order: Sendable {
        let key: ImageSourceKey
        let options: ImageCacheOptions
        let epoch: Int
        let request: TransportRequest
    }

    /// A response that is stored, with its file.
    struct Stored: Sendable {
        let entry: HTTPCacheEntry
        let bytes: [UInt8]
    }

    let transport: any Transport
    let store: ImageStore
    let terms: ImageTerms
    let decoders: ImageDecoders
    let retry: ImageRetryPolicy
    let clock: any WallClock
    let uptime: any MonotonicClock
    let bytesMaximum: Int
    let report: @Sendable (() -> ImageEvent) -> Void

    /// - Parameters:
    ///   - partial: what an earlier download left in memory.
    ///   - keep: takes what this one leaves when it fails and the disk does not keep it.
    ///   - progress: told of what has arrived so far, whenever more has.
    func load(
        _ key: ImageSourceKey,
        _ options: ImageCacheOptions,
        epoch: Int,
        partial: PartialImage?,
        keep: (PartialImage) -> Void,
        progress: ([UInt8], Int?) -> Void
    ) async throws(ImageError) -> LoadedImage {
        var fields = key.fields
        if fields[.accept] == nil { fields.add(.accept, "image/*") }
        let request = TransportRequest(url: key.url, fields: fields, bodyLimit: bytesMaximum)
        let order = Order(key: key, options: options, epoch: epoch, request: request)
        var entries = options.contains(.skipDiskRead) ? [] : store.entries(key)
        while true {
            let decision = HTTPCacheDecision.decide(
                method: .get,
                fields: fields,
                entries: entries,
                now: clock.now,
                policy: terms.policy,
                isOffline: options.contains(.onlyCached)
            )
            var stored: Stored?
            if let entry = decision.entry {
                guard let bytes = file(of: entry, order) else {
                    // As if it had never been stored.
                    entries.removeAll { $0.bodyID == entry.bodyID }
                    continue
                }
                stored = Stored(entry: entry, bytes: bytes)
            }
            var conditions = Fields()
            switch decision.action {
            case .serve, .serveStale:
                if let stored { return hit(stored, order) }
            case .serveWhileRevalidating:
                if let stored {
                    guard options.contains(.mustValidate) else { return hit(stored, order, wantsValidation: true) }
                    conditions = HTTPCacheValidation.conditions(stored.entry, entries, fields)
                }
            case .validate(let asked): conditions = asked
            case .forward: break
            case .gatewayTimeout, .unreachable:
                throw ImageError(
                    .notCached,
                    "\(key.url) cannot be shown from the cache: \(decision.explanation) Ask without .onlyCached to fetch it."
                )
            }
            do {
                var download = ImageDownload(self, order, stored, entries, conditions)
                return try await download.run(partial, keep, progress)
            } catch {
                // What the server says is gone is gone; otherwise what there is may be better than nothing.
                if let stored, terms.mayStandIn(stored.entry, for: error, fields, now: clock.now) {
                    report { .staleUsed(url: key.url, because: error) }
                    return loaded(stored.entry, stored.bytes, .disk, order, isOnDisk: true)
                }
                if let stored, error.status == 404 || error.status == 410 {
                    store.remove(stored.entry.bodyID, key, epoch: epoch)
                }
                throw error
            }
        }
    }

    private func hit(_ stored: Stored, _ order: Order, wantsValidation: Bool = false) -> LoadedImage {
        report { .hit(url: order.key.url, tier: .disk) }
        var image = loaded(stored.entry, stored.bytes, .disk, order, isOnDisk: true)
        image.wantsValidation = wantsValidation
        return image
    }

    func loaded(
        _ entry: HTTPCacheEntry?,
        _ bytes: [UInt8],
        _ origin: ImageOrigin,
        _ order: Order,
        isOnDisk: Bool
    ) -> LoadedImage {
        LoadedImage(
            bytes: bytes,
            origin: origin,
            contentID: entry?.bodyID,
            freshness: entry.flatMap { terms.freshness($0, order.request.fields, now: clock.now) },
            isOnDisk: isOnDisk
        )
    }

    /// The file of a stored response, if it is whole. What is not is removed.
    private func file(of entry: HTTPCacheEntry, _ order: Order) -> [UInt8]? {
        guard let bytes = store.body(entry, order.key) else {
            report { .damaged(url: order.key.url, origin: .disk) }
            store.remove(entry.bodyID, order.key, epoch: order.epoch)
            return nil
        }
        do {
            try decoders.decoder(for: bytes).verify(bytes)
            return bytes
        } catch {
            report { .damaged(url: order.key.url, origin: .disk) }
            store.remove(entry.bodyID, order.key, epoch: order.epoch)
            return nil
        }
    }
}
