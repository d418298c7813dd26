import LarderEvents
import LarderHTTP
import LarderHTTPCache
import LarderStorage
import LarderTime
import LarderTransport

/// A complete and verified file, and where it came from.
struct LoadedImage: Sendable {
    /// Where it is stored, after redirects.
    let source: ImageSourceKey
    let bytes: [UInt8]
    let origin: CacheTier
    /// Identifies the content; nil if it must not be stored.
    let contentID: String?
    /// The period in which its pixels are fresh; nil if each use needs a decision.
    var freshness: ImageFreshness?
    /// The duration of the download.
    var duration: Duration = .zero
    var isOnDisk: Bool
    /// Whether to validate it in the background (RFC 5861 §3).
    var wantsValidation = false
}

/// Loads one file or redirect: from disk, from a server, or the rest of it from a server. A value without state.
struct ImageLoader: Sendable {
    /// One load: key, options and request.
    struct Order: Sendable {
        let key: ImageSourceKey
        let options: ImageRequest.CacheOptions
        let epoch: Int
        let request: TransportRequest
        /// Whether only prefetching waits for the picture now.
        let isPrefetch: @Sendable () -> Bool
    }

    /// A stored response with its file.
    struct Stored: Sendable {
        let entry: HTTPCacheEntry
        let bytes: [UInt8]
    }

    let configuration: ImagePipeline.Configuration
    let store: ImageStore
    let report: @Sendable (() -> ImagePipeline.Event) -> Void

    /// - Parameters:
    ///   - isPrefetch: whether only prefetching waits for the picture now.
    ///   - progress: called with the bytes so far whenever more arrive.
    func load(
        _ key: ImageSourceKey,
        _ options: ImageRequest.CacheOptions,
        epoch: Int,
        isPrefetch: @escaping @Sendable () -> Bool,
        progress: ([UInt8], Int?) -> Void
    ) async throws(ImageError) -> ImageReply {
        var fields = key.fields
        if fields[.accept] == nil { fields.add(.accept, "image/*") }
        let request = TransportRequest(
            url: key.url,
            fields: fields,
            bodyLimit: configuration.bytesMaximum,
            followsRedirects: false
        )
        let order = Order(key: key, options: options, epoch: epoch, request: request, isPrefetch: isPrefetch)
        var entries = options.contains(.skipDiskRead) ? [] : store.entries(key)
        while true {
            let decision = HTTPCacheDecision.decide(
                method: .get,
                fields: fields,
                entries: entries,
                now: configuration.clock.now,
                policy: configuration.policy,
                isOffline: options.contains(.onlyCached)
            )
            var stored: Stored?
            if let entry = decision.entry {
                guard let bytes = file(of: entry, order) else {
                    // Decided again without the damaged response.
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
                    conditions = HTTPCacheValidation.conditions(stored.entry, entries, fields, configuration.policy)
                }
            case .validate(let asked): conditions = asked
            case .forward: break
            case .gatewayTimeout, .unreachable:
                throw ImageError(
                    .notCached,
                    "\(key.url) cannot be shown from the cache: \(decision.explanation) Request it without .onlyCached to download it."
                )
            }
            do {
                var download = ImageDownload(self, order, stored, entries, conditions)
                return try await download.run(progress)
            } catch {
                // 404 and 410 remove the stored file; after other failures it may be used.
                if let stored,
                    configuration.policy.mayServeStale(stored.entry, for: error, fields, now: configuration.clock.now)
                {
                    report { .staleUsed(url: key.url, because: error) }
                    if let redirect = redirect(stored.entry, order) { return .redirect(redirect) }
                    return .picture(loaded(stored.entry, stored.bytes, .disk, order, isOnDisk: true))
                }
                if let stored, error.status == 404 || error.status == 410 {
                    store.remove(stored.entry.bodyID, key, epoch: epoch)
                }
                throw error
            }
        }
    }

    private func hit(_ stored: Stored, _ order: Order, wantsValidation: Bool = false) -> ImageReply {
        if var redirect = redirect(stored.entry, order) {
            redirect.wantsValidation = wantsValidation
            return .redirect(redirect)
        }
        report { .hit(url: order.key.url, tier: .disk, isPrefetch: order.isPrefetch()) }
        var image = loaded(stored.entry, stored.bytes, .disk, order, isOnDisk: true)
        image.wantsValidation = wantsValidation
        return .picture(image)
    }

    /// The redirect that a stored response is; nil if it is a picture.
    func redirect(_ entry: HTTPCacheEntry, _ order: Order) -> ImageRedirect? {
        order.key.redirected(entry.status, entry.fields).map { target in
            ImageRedirect(
                target: target,
                freshness: configuration.policy.freshness(entry, order.request.fields, now: configuration.clock.now)
            )
        }
    }

    func loaded(
        _ entry: HTTPCacheEntry?,
        _ bytes: [UInt8],
        _ origin: CacheTier,
        _ order: Order,
        isOnDisk: Bool
    ) -> LoadedImage {
        LoadedImage(
            source: order.key,
            bytes: bytes,
            origin: origin,
            contentID: entry?.bodyID,
            freshness: entry.flatMap {
                configuration.policy.freshness($0, order.request.fields, now: configuration.clock.now)
            },
            isOnDisk: isOnDisk
        )
    }

    /// The file of a stored response if it is whole, or no bytes for a redirect. A damaged one is removed; one that cannot be read now
    /// stays.
    private func file(of entry: HTTPCacheEntry, _ order: Order) -> [UInt8]? {
        do {
            if let bytes = try store.body(entry, order.key) {
                if redirect(entry, order) != nil { return bytes }
                try configuration.decoders.decoder(for: bytes).verify(bytes)
                return bytes
            }
        } catch is DiskError { return nil } catch {
            // The file fails its own checks.
        }
        report { .damaged(url: order.key.url, origin: .disk) }
        store.remove(entry.bodyID, order.key, epoch: order.epoch)
        return nil
    }
}
