import LarderEvents
import LarderHTTP
import LarderHTTPCache
import LarderTime
import LarderTransport
import Synchronization

/// A complete and verified file, and where it came from.
struct LoadedImage: Sendable {
    /// Where it is stored, after redirects.
    let source: ImageSourceKey
    let bytes: [UInt8]
    let origin: CacheTier
    /// Identifies the content; nil if it must not be stored.
    let contentID: String?
    /// The period in which its pixels are fresh; nil if each use needs a decision.
    var freshness: Range<WallTime>?
    /// Whether its pixels may be shown when they are stale and no request may be sent.
    var mayBeStale: Bool
    /// The time to load it again: that of the download if it is not on disk.
    let effort: Duration
    /// Whether to validate it in the background (RFC 5861 §3).
    let wantsValidation: Bool
}

/// Loads one file or redirect through the HTTP cache, which stores, validates and resumes it.
extension ImagePipeline {
    func load(_ key: ImageLoadKey, _ serial: Int) async throws(ImageError) -> ImageReply {
        var request = TransportRequest(
            url: key.source.url,
            fields: key.source.fields,
            bodyLimit: configuration.bytesMaximum,
            followsRedirects: false
        )
        if !request.fields.contains(.accept) { request.fields.add(.accept, "image/*") }
        // Pictures are compressed already, and a part of coded content could not be resumed.
        if !request.fields.contains(.acceptEncoding) { request.fields.add(.acceptEncoding, "identity") }
        if key.options.contains(.mustReload) { request.fields.set(.cacheControl, "no-cache") }
        let check = ContentCheck()
        let file = file(key, serial, check)
        let policy = configuration.retry
        let begun = configuration.uptime.uptime
        var (tries, idle, progressed) = (0, 0, begun)
        while true {
            tries += 1
            let had = file.arrivedCount
            let failure: ImageError
            do throws(ImageError) {
                return try await reply(key, request, file, check, since: begun)
            } catch { failure = error }
            // Caches on the way are bypassed, because what they sent was damaged.
            if failure.code == .damaged { request.fields.set(.cacheControl, "no-cache") }
            let now = configuration.uptime.uptime
            if file.arrivedCount > had { (idle, progressed) = (0, now) } else { idle += 1 }
            let asked = failure.retryAfter ?? .zero
            let wait = idle == 0 ? .zero : policy.backoffMaximum(attempt: idle) * configuration.random() + asked
            guard !Task.isCancelled, failure.isTransient, tries < configuration.triesMaximum,
                policy.attemptsMaximum > max(1, idle), asked <= .seconds(10),
                idle == 0 || now - progressed + wait <= policy.elapsedMaximum
            else { throw Task.isCancelled ? .cancelled : failure }
            report { .retried(url: request.url, attempt: tries + 1, because: failure) }
            do {
                if idle > 0 { try await configuration.uptime.sleep(until: now + wait) }
            } catch { throw .cancelled }
        }
    }

    private final class ContentCheck: Sendable {
        /// The error of the last content that was checked; nil if it was whole.
        let flaw = Mutex<ImageError?>(nil)
    }

    private func file(_ key: ImageLoadKey, _ serial: Int, _ check: ContentCheck) -> HTTPCacheFile {
        let url = key.source.url
        var file = HTTPCacheFile(key: key.source.identity)
        file.readsStorage = !key.options.contains(.skipDiskRead)
        file.isOffline = key.options.contains(.onlyCached)
        file.mustValidate = key.options.contains(.mustValidate)
        let writesStorage = !key.options.contains(.skipDiskWrite)
        file.mayStore = { [self] in writesStorage && isCurrent(key.epoch) }
        file.accepts = { [self] status, bytes, isStored in
            guard status == .ok else { return true }
            do throws(ImageError) {
                try configuration.decoders.decoder(for: bytes).verify(bytes)
                check.flaw.withLock { $0 = nil }
                return true
            } catch {
                let flaw = error.ofWholeFile
                check.flaw.withLock { $0 = flaw }
                if isStored || flaw.code == .damaged {
                    report { .damaged(url: url, origin: isStored ? .disk : .network) }
                }
                return false
            }
        }
        file.onRequest = { [self] offset in
            report { .downloadStarted(url: url, offset: offset, isPrefetch: isPrefetch(key)) }
        }
        file.onBytes = { [self] bytes, length in preview(key, serial, bytes, length) }
        return file
    }

    /// One try.
    private func reply(
        _ key: ImageLoadKey,
        _ request: TransportRequest,
        _ file: HTTPCacheFile,
        _ check: ContentCheck,
        since begun: MonotonicTime
    ) async throws(ImageError) -> ImageReply {
        let url = request.url
        check.flaw.withLock { $0 = nil }
        let response: HTTPCache.Response
        do throws(TransportError) { response = try await cache.response(for: request, file) } catch {
            throw key.options.contains(.onlyCached) ? .notCached(url, error.description) : ImageError(error)
        }
        var isFallback = false
        if case .stale(let reason) = response.source, let failure = ImageError(reason, response.explanation) {
            isFallback = true
            report { .staleUsed(url: url, because: failure) }
        }
        let isRevalidating = response.source == .stale(.revalidating)
        // Cache directives of the request are evaluated each time.
        let isSimple = !key.source.fields.contains(.cacheControl) && !key.source.fields.contains(.pragma)
        let freshness = response.entry.flatMap {
            isSimple ? $0.freshness(now: configuration.clock.now, policy: cache.configuration.policy) : nil
        }
        let mayBeStale = response.entry?.mayBeStale(cache.configuration.policy) ?? false
        if let target = key.source.redirected(response.status, response.fields) {
            let redirect = ImageRedirect(
                target: target,
                freshness: freshness,
                mayBeStale: mayBeStale,
                wantsValidation: isRevalidating
            )
            return .redirect(redirect)
        }
        guard response.source != .cacheOnlyMiss else { throw .notCached(url, response.explanation) }
        guard response.status == .ok else {
            throw ImageError(
                .status,
                "\(url) was answered with \(response.status.code).",
                status: response.status.code,
                retryAfter: RetryAfterField.wait(response.fields, now: configuration.clock.now)
            )
        }
        let count = response.body.count
        let duration = configuration.uptime.uptime - begun
        switch response.source {
        case .network:
            if let flaw = check.flaw.withLock({ $0 }) { throw flaw }
            report {
                .downloadFinished(url: url, byteCount: count, duration: duration, isPrefetch: isPrefetch(key))
            }
        case .revalidated: report { .revalidated(url: url, bytesSaved: count) }
        default:
            if !isFallback { report { .hit(url: url, tier: .disk, isPrefetch: isPrefetch(key)) } }
        }
        let isNew = response.source == .network
        let isStored =
            response.entry != nil && configuration.disk != nil && !(isNew && key.options.contains(.skipDiskWrite))
        let image = LoadedImage(
            source: key.source,
            bytes: response.body,
            origin: isNew ? .network : .disk,
            contentID: response.entry?.bodyID,
            freshness: freshness,
            mayBeStale: mayBeStale,
            effort: isNew && !isStored ? duration : .zero,
            wantsValidation: isRevalidating
        )
        return .picture(image)
    }
}
