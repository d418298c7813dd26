import LarderEvents
import LarderHTTPCache
import LarderMemory
import LarderTime
import Synchronization

/// Starting and finishing work: downloads, decodes and previews.
extension ImagePipeline {
    /// The longest time for which a failure is remembered because of `Retry-After`.
    private static var negativeMaximum: Duration { .seconds(300) }
    /// The bytes of loaded files that wait to be decoded, at which no further load of their priority or a lower one starts.
    private static var undecodedBytesMaximum: Int { 32 << 20 }
    /// A preview that took longer is the last one of its job.
    private static var previewDurationMaximum: Duration { .milliseconds(250) }

    func schedule(_ state: inout ImagePipelineState, _ effects: inout [Effect]) {
        let lowest: ImageRequest.Priority = state.isPrefetchPaused ? .low : .prefetch
        while state.runningDecodes < state.decodesMaximum, let key = state.nextJob(downTo: lowest),
            let job = state.jobs[key], case .queued(let loaded) = job.phase
        {
            state.runningDecodes += 1
            // Detached with a priority of its own: a decode never suspends, and two of them would occupy both threads of the
            // cooperative pool of a machine with two processors.
            let task = Task.detached(priority: job.priority < .high ? .utility : .high) { [self] in
                let now = configuration.uptime.uptime
                report { .decodeBegan(url: job.request.url, waited: now - (job.loadedAt ?? now)) }
                await decode(key, job.serial, job.request, loaded)
            }
            state.jobs[key]?.phase = .running(task)
        }
        // After the decodes, which make room.
        while state.runningLoads < state.loadsMaximum, let key = state.nextLoad(downTo: lowest),
            let load = state.loads[key], state.undecodedBytes(from: load.priority) < Self.undecodedBytesMaximum
        {
            state.runningLoads += 1
            let task = Task.detached { [self] in await run(key, load.serial) }
            state.loads[key]?.phase = .running(task)
        }
    }

    private func run(_ key: ImageLoadKey, _ serial: Int) async {
        let result: Result<ImageReply, ImageError>
        do { result = .success(try await load(key, serial)) } catch { result = .failure(error) }
        change { state, effects in
            state.runningLoads -= 1
            guard let load = state.loads[key], load.serial == serial else { return }
            state.loads[key] = nil
            for dependent in load.dependents { state.jobs[dependent]?.preview?.cancel() }
            switch result {
            case .success(.picture(let loaded)):
                if loaded.wantsValidation { validate(key, &state) }
                for dependent in load.dependents { enqueue(dependent, loaded, &state, &effects) }
            case .success(.redirect(let redirect)):
                if redirect.wantsValidation { validate(key, &state) }
                for dependent in load.dependents { follow(redirect, dependent, from: key, &state, &effects) }
            case .failure(let error):
                // Also for the URLs that redirected to it.
                let sources = Set(load.dependents.map(\.result.source) + [key.source])
                if [404, 410].contains(error.status) { removePixels(of: sources) }
                let now = configuration.uptime.uptime
                var remembered: MonotonicTime?
                // The result of a background validation is not reported.
                let isAnswer = error.code != .cancelled && !key.options.contains(.mustValidate)
                if isAnswer, error.code != .notCached, key.epoch == state.epoch {
                    // `Retry-After` is respected up to a limit.
                    let asked = min(error.retryAfter ?? .zero, Self.negativeMaximum)
                    let until = now + max(configuration.negativeLifetime, asked)
                    // A request that does not read the disk says nothing about the file there, unless that was damaged and removed.
                    if !key.options.contains(.skipDiskRead) || key.options.contains(.mustReload) {
                        for source in sources { state.remember(error, for: source, until: until) }
                    }
                    remembered = until
                }
                for dependent in load.dependents { end(dependent, with: error, &state, &effects) }
                if let remembered, load.priority >= .high { effects.append(.refreshLists(at: remembered)) }
            }
        }
    }

    /// Whether only prefetching waits for a load.
    func isPrefetch(_ key: ImageLoadKey) -> Bool { state.withLock { $0.loads[key]?.priority == .prefetch } }

    /// Validates a stale picture that was shown meanwhile, at a low priority. It is no prefetching, which may be paused.
    private func validate(_ key: ImageLoadKey, _ state: inout ImagePipelineState) {
        let options = key.options.union(.mustValidate)
        let asking = ImageLoadKey(source: key.source, options: options, epoch: key.epoch)
        guard state.loads[asking] == nil else { return }
        state.loads[asking] = ImageLoadJob(serial: state.serial(), priority: .low, dependents: [])
    }

    func enqueue(
        _ key: ImageJobKey,
        _ loaded: LoadedImage,
        _ state: inout ImagePipelineState,
        _ effects: inout [Effect]
    ) {
        guard let job = state.jobs[key] else { return }
        var loaded = loaded
        // Pixels are fresh while the picture and all redirects to it are, and may be stale only if all of them may.
        for hop in job.hops {
            loaded.freshness = loaded.freshness.flatMap { period in hop.freshness.map { period.clamped(to: $0) } }
            loaded.mayBeStale = loaded.mayBeStale && hop.mayBeStale
        }
        if job.loadedAt == nil { state.jobs[key]?.loadedAt = configuration.uptime.uptime }
        if configuration.submitWhenIdle != nil, job.priority < .high {
            if case .waitingForIdle = job.phase { return }
            state.jobs[key]?.phase = .waitingForIdle(loaded)
            effects.append(.waitForIdle(key, serial: job.serial))
        } else {
            state.jobs[key]?.phase = .queued(loaded)
        }
    }

    func isWaitingForIdle(_ key: ImageJobKey, _ serial: Int) -> Bool {
        state.withLock { state in
            guard let job = state.jobs[key], job.serial == serial, case .waitingForIdle = job.phase else {
                return false
            }
            return true
        }
    }

    func idleCame(_ key: ImageJobKey, _ serial: Int) {
        change { state, _ in
            guard let job = state.jobs[key], job.serial == serial, case .waitingForIdle(let loaded) = job.phase else {
                return
            }
            state.jobs[key]?.phase = .queued(loaded)
        }
    }

    private func decode(_ key: ImageJobKey, _ serial: Int, _ request: ImageRequest, _ loaded: LoadedImage) async {
        let result: Result<MemoryPicture, ImageError>
        do {
            if let known = reused(key, loaded) {
                result = .success(known)
            } else {
                result = .success(try pixels(request, loaded))
            }
        } catch {
            result = .failure(error)
        }
        var isDamaged = false
        if case .failure(let error) = result, error.code == .damaged {
            isDamaged = true
            report { .damaged(url: request.url, origin: loaded.origin) }
            if let id = loaded.contentID {
                await cache.remove(contentID: id, key: loaded.source.identity)
            }
        }
        // A response that must not be stored is not kept in memory either (RFC 9111 §5.2.2.5).
        var kept: MemoryPicture?
        if case .success(let picture) = result, loaded.contentID != nil, !key.options.contains(.skipMemoryWrite) {
            kept = picture
            kept?.mayBeStale = loaded.mayBeStale
        }
        change { [kept, isDamaged] state, effects in
            state.runningDecodes -= 1
            guard let job = state.jobs[key], job.serial == serial else { return }
            if isDamaged, !job.isRepeated, !key.options.contains(.onlyCached) {
                // Fetched once more from the server: neither the stored file, the received bytes nor a cache on the way can be trusted.
                let again = ImageLoadKey(
                    source: key.result.source,
                    options: key.options.union([.skipDiskRead, .mustReload]),
                    epoch: key.epoch
                )
                state.jobs[key]?.isRepeated = true
                state.jobs[key]?.loadedAt = nil
                state.jobs[key]?.hops = []
                state.jobs[key]?.phase = .loading(again)
                _ = attach(key, to: again, &state)
                return
            }
            switch result {
            case .success(let picture):
                state.jobs[key] = nil
                if loaded.contentID == nil { removePixels(of: [key.result.source, loaded.source]) }
                // A job with other options may have loaded a newer file meanwhile.
                let known = memory.peek(key.result)?.loadedAt
                if key.epoch == state.epoch, var kept, let loadedAt = job.loadedAt,
                    known.map({ $0 <= loadedAt }) ?? true
                {
                    kept.loadedAt = loadedAt
                    memory.store(kept, for: key.result, cost: kept.image.cost, score: kept.score)
                }
                for entry in job.waiters.values {
                    effects.append(.show(entry.waiter, .image(picture.image, from: loaded.origin)))
                }
                let delivered = Event.delivered(
                    url: job.request.url,
                    from: loaded.origin,
                    duration: configuration.uptime.uptime - job.began,
                    isPrefetch: job.priority == .prefetch
                )
                effects.append(.tell(delivered))
            case .failure(let error):
                // A file that is damaged on the server, too, is not fetched again at once.
                if error.code == .damaged, key.epoch == state.epoch {
                    let until = configuration.uptime.uptime + configuration.negativeLifetime
                    state.remember(error, for: key.result.source, until: until)
                    if job.priority >= .high { effects.append(.refreshLists(at: until)) }
                }
                end(key, with: error, &state, &effects)
            }
        }
    }

    /// Removes pixels of all sizes from memory, because the server has taken their files back.
    private func removePixels(of sources: Set<ImageSourceKey>) {
        for key in memory.keys where sources.contains(key.source) { memory.remove(key) }
    }

    /// The pixels in memory that were made of this very file, with the freshness of the new response.
    private func reused(_ key: ImageJobKey, _ loaded: LoadedImage) -> MemoryPicture? {
        guard let id = loaded.contentID, !key.options.contains(.skipMemoryRead), let known = memory.peek(key.result),
            known.contentID == id
        else { return nil }
        report { .reused(url: key.result.source.url) }
        return MemoryPicture(image: known.image, contentID: id, freshness: loaded.freshness, effort: known.effort)
    }

    private func pixels(_ request: ImageRequest, _ loaded: LoadedImage) throws(ImageError) -> MemoryPicture {
        let begun = configuration.uptime.uptime
        let image: DecodedImage
        do {
            image = try configuration.decoders.decoder(for: loaded.bytes)
                .decode(loaded.bytes, into: request.target, limits: configuration.limits)
        } catch {
            throw error.ofWholeFile
        }
        let duration = configuration.uptime.uptime - begun
        report { .decoded(url: request.url, width: image.width, height: image.height, duration: duration) }
        return MemoryPicture(
            image: image,
            contentID: loaded.contentID ?? "",
            freshness: loaded.freshness,
            effort: loaded.effort + duration
        )
    }

    /// Ends a job with an error.
    func end(
        _ key: ImageJobKey,
        with error: ImageError,
        _ state: inout ImagePipelineState,
        _ effects: inout [Effect]
    ) {
        guard let job = state.jobs.removeValue(forKey: key) else { return }
        for entry in job.waiters.values { effects.append(.fail(entry.waiter, error)) }
        effects.append(.tell(.failed(url: job.request.url, error)))
    }

    // MARK: Previews

    /// Starts previews of the bytes received so far for the jobs that want them, as decodes: within `decodesMaximum`, and if no place is
    /// free, the next bytes bring another try. Tried each time the part has grown by a quarter, because a try starts at the beginning of
    /// the file.
    func preview(_ key: ImageLoadKey, _ serial: Int, _ bytes: [UInt8], _ length: Int?) {
        guard bytes.count < length ?? .max else { return }
        state.withLock { state in
            guard let load = state.loads[key], load.serial == serial else { return }
            for dependent in load.dependents where state.runningDecodes < state.decodesMaximum {
                guard let job = state.jobs[dependent], job.request.wantsPreviews, job.preview == nil,
                    bytes.count >= job.previewsFrom
                else { continue }
                state.runningDecodes += 1
                state.jobs[dependent]?.previewsFrom = bytes.count + bytes.count / 4
                let (serial, request, detail) = (job.serial, job.request, job.previewDetail)
                state.jobs[dependent]?.preview = Task.detached(priority: .utility) { [self] in
                    decodePreview(dependent, serial, request, bytes, beyond: detail)
                }
            }
        }
    }

    private func decodePreview(
        _ key: ImageJobKey,
        _ serial: Int,
        _ request: ImageRequest,
        _ bytes: [UInt8],
        beyond detail: Int
    ) {
        let decoder = configuration.decoders.decoder(recognizing: bytes) as? any ProgressiveImageDecoder
        let began = configuration.uptime.uptime
        let preview = decoder?.preview(bytes, beyond: detail, into: request.target, limits: configuration.limits)
        let isSlow = configuration.uptime.uptime - began > Self.previewDurationMaximum
        change { state, effects in
            state.runningDecodes -= 1
            guard let job = state.jobs[key], job.serial == serial else { return }
            state.jobs[key]?.preview = nil
            if isSlow { state.jobs[key]?.previewsFrom = .max }
            // The complete file is about to be decoded.
            guard case .loading = job.phase, let preview, !Task.isCancelled else { return }
            state.jobs[key]?.previewDetail = preview.detail
            for entry in job.waiters.values { effects.append(.show(entry.waiter, .preview(preview.image))) }
        }
    }
}
