import LarderEvents
import LarderTime
import Synchronization

/// The state machine. Every step is taken under the lock by the caller that causes it; effects outside (waiters, observers) follow
/// after the lock is released. Tasks only do the work and report with the serial of their job.
extension ImagePipeline {
    /// An effect that is carried out after the lock is released.
    enum Effect {
        case show(ImageWaiter, ImageTask.Stage)
        case hit(ImageWaiter, MemoryPicture)
        case fail(ImageWaiter, ImageError)
        case tell(ImagePipeline.Event)
        case waitForIdle(ImageJobKey, serial: Int)
        case refreshLists(at: MonotonicTime)
    }

    func change(_ body: (inout ImagePipelineState) -> Void) {
        change { state, _ in body(&state) }
    }

    func change(_ body: (inout ImagePipelineState, inout [Effect]) -> Void) {
        let effects = state.withLock { state in
            var effects: [Effect] = []
            body(&state, &effects)
            schedule(&state, &effects)
            return effects
        }
        for effect in effects {
            switch effect {
            case .show(let waiter, let stage): waiter.show(stage)
            case .hit(let waiter, let picture): waiter.show(.image(picture.image, from: .memory))
            case .fail(let waiter, let error): waiter.fail(error)
            case .tell(let event): report { event }
            case .waitForIdle(let key, let serial):
                configuration.submitWhenIdle? { [weak self] in
                    self?.isWaitingForIdle(key, serial) ?? false
                } _: { [weak self] in
                    self?.idleCame(key, serial)
                }
            case .refreshLists(let time): refreshLists(at: time)
            }
        }
        tellDepartures()
    }

    // MARK: Joining

    /// The most pixels of a placeholder, so that the main thread is not blocked.
    private static var placeholderPixelsMaximum: Int { 256 * 256 }

    func start(
        _ request: ImageRequest,
        placeholder: Bool,
        keepsPicture: Bool = true,
        onPicture: (@Sendable () -> Void)? = nil
    ) -> ImageTask {
        let waiter = ImageWaiter(keepsPictures: keepsPicture, onPicture: onPicture)
        if placeholder, !request.placeholder.isEmpty, cachedImage(for: request) == nil,
            let image = self.placeholder(request)
        {
            waiter.show(.placeholder(image))
        }
        var request = request
        var number = 0
        var key: ImageJobKey?
        change { state, effects in
            // A picture of full size in memory is used as it is; a new one is made in the current quality.
            var found = cachedPicture(for: request)
            if found == nil, state.quality < 1, let target = request.target {
                request.target = ImageTarget(
                    width: Int(Double(target.width) * state.quality),
                    height: Int(Double(target.height) * state.quality),
                    mode: target.mode
                )
                found = cachedPicture(for: request)
            }
            if let found {
                effects.append(.hit(waiter, found))
                let isPrefetch = request.priority == .prefetch
                effects.append(.tell(.hit(url: request.url, tier: .memory, isPrefetch: isPrefetch)))
                return
            }
            number = state.serial()
            key = join(request, waiter, number, &state, &effects)
        }
        let (job, id) = (key, number)
        // The task keeps the pipeline alive, so that every waiter gets a result.
        return ImageTask(request, waiter, job) { [self] in
            if let job { leave(job, id) }
        }
    }

    /// Decodes the placeholder of a request on the caller's thread; nil if it cannot be decoded, or is no small picture.
    private func placeholder(_ request: ImageRequest) -> DecodedImage? {
        let begun = configuration.uptime.uptime
        var limits = configuration.limits
        limits.sourcePixelsMaximum = min(limits.sourcePixelsMaximum, Self.placeholderPixelsMaximum)
        do {
            let decoder = try configuration.decoders.decoder(for: request.placeholder)
            let image = try decoder.decode(request.placeholder, into: request.target, limits: limits)
            report { .placeholder(url: request.url, duration: configuration.uptime.uptime - begun) }
            return image
        } catch {
            return nil
        }
    }

    /// Joins the job for a request or creates it; nil if the request failed at once.
    private func join(
        _ request: ImageRequest,
        _ waiter: ImageWaiter,
        _ id: Int,
        _ state: inout ImagePipelineState,
        _ effects: inout [Effect]
    ) -> ImageJobKey? {
        let source = ImageSourceKey(request)
        let result = ImageResultKey(request, target: request.target)
        let key = ImageJobKey(result: result, options: request.cache, epoch: state.epoch)
        if state.jobs[key] != nil {
            state.jobs[key]?.waiters[id] = (waiter, request.priority)
            effects.append(.tell(.mergedDecode(url: request.url)))
            updatePriority(key, &state, &effects)
            return key
        }
        if let failure = state.remembered(source, request.cache, now: configuration.uptime.uptime) {
            effects.append(.fail(waiter, failure.error))
            if request.priority >= .high { effects.append(.refreshLists(at: failure.until)) }
            return nil
        }
        if state.isClosed {
            effects.append(.fail(waiter, .cancelled))
            return nil
        }
        let load = ImageLoadKey(source: source, options: request.cache, epoch: state.epoch)
        var job = ImageJob(
            serial: state.serial(),
            request: request,
            began: configuration.uptime.uptime,
            phase: .loading(load),
            priority: request.priority
        )
        job.waiters[id] = (waiter, request.priority)
        state.jobs[key] = job
        if attach(key, to: load, &state) { effects.append(.tell(.mergedDownload(url: request.url))) }
        return key
    }

    /// Attaches a job to a download, which is created if there is none. Returns whether there was one.
    func attach(_ key: ImageJobKey, to load: ImageLoadKey, _ state: inout ImagePipelineState) -> Bool {
        if state.loads[load] != nil {
            state.loads[load]?.dependents.insert(key)
            updateLoadPriority(load, &state)
            return true
        }
        let priority = state.jobs[key]?.priority ?? .normal
        state.loads[load] = ImageLoadJob(serial: state.serial(), priority: priority, dependents: [key])
        return false
    }

    // MARK: Leaving and changing priority

    func leave(_ key: ImageJobKey, _ id: Int) {
        change { state, effects in
            // Waiter serials are unique: a later job under the same key does not contain it.
            guard state.jobs[key]?.waiters.removeValue(forKey: id) != nil, let job = state.jobs[key] else { return }
            if job.waiters.isEmpty {
                drop(key, job, &state, &effects)
            } else {
                updatePriority(key, &state, &effects)
            }
        }
    }

    private func drop(
        _ key: ImageJobKey,
        _ job: ImageJob,
        _ state: inout ImagePipelineState,
        _ effects: inout [Effect]
    ) {
        state.jobs[key] = nil
        job.preview?.cancel()
        var wasRunning = false
        switch job.phase {
        case .running(let task):
            wasRunning = true
            task.cancel()
        case .loading(let load):
            state.loads[load]?.dependents.remove(key)
            if let rest = state.loads[load], rest.dependents.isEmpty {
                if case .running(let task) = rest.phase {
                    wasRunning = true
                    task.cancel()
                }
                state.loads[load] = nil
            } else {
                updateLoadPriority(load, &state)
            }
        case .queued, .waitingForIdle: break
        }
        let isPrefetch = job.priority == .prefetch
        effects.append(.tell(.cancelled(url: job.request.url, wasRunning: wasRunning, isPrefetch: isPrefetch)))
    }

    private func updatePriority(_ key: ImageJobKey, _ state: inout ImagePipelineState, _ effects: inout [Effect]) {
        guard let job = state.jobs[key] else { return }
        let priority = job.waiters.values.map(\.priority).max() ?? .prefetch
        guard priority != job.priority else { return }
        state.jobs[key]?.priority = priority
        switch job.phase {
        case .waitingForIdle(let loaded): enqueue(key, loaded, &state, &effects)
        case .loading(let load): updateLoadPriority(load, &state)
        case .queued, .running: break
        }
    }

    private func updateLoadPriority(_ key: ImageLoadKey, _ state: inout ImagePipelineState) {
        guard let load = state.loads[key] else { return }
        state.loads[key]?.priority = load.dependents.compactMap { state.jobs[$0]?.priority }.max() ?? .prefetch
    }

    func giveUp(below priority: ImageRequest.Priority) {
        change { state, effects in giveUp(&state, &effects) { $0 < priority } }
    }

    private func giveUp(
        _ state: inout ImagePipelineState,
        _ effects: inout [Effect],
        where isMeant: (ImageRequest.Priority) -> Bool
    ) {
        for (key, job) in state.jobs where isMeant(job.priority) {
            for entry in job.waiters.values { effects.append(.fail(entry.waiter, .cancelled)) }
            drop(key, job, &state, &effects)
        }
        // Background validations have no waiters.
        for (key, load) in state.loads where load.dependents.isEmpty && isMeant(load.priority) {
            if case .running(let task) = load.phase { task.cancel() }
            state.loads[key] = nil
        }
    }

    /// Ends all work. Its requests and later ones that need work fail with `.cancelled`; pixels in memory can still be shown.
    package func close() {
        change { state, effects in
            state.isClosed = true
            giveUp(&state, &effects) { _ in true }
        }
    }
}
