import LarderTime

/// A download that is wanted.
struct ImageLoadJob {
    enum Phase {
        case queued
        case running(Task<Void, Never>)
    }

    /// Tells it from earlier and later ones for the same bytes: what a cancelled one reports is nobody's any more.
    let serial: Int
    var phase = Phase.queued
    var priority: ImagePriority
    /// Who decodes what it brings.
    var dependents: Set<ImageJobKey>
}

/// A result that is wanted.
struct ImageJob {
    enum Phase {
        case loading(ImageLoadKey)
        case waitingForIdle(LoadedImage)
        case queued(LoadedImage)
        case running(Task<Void, Never>)
    }

    let serial: Int
    /// Of the first who asked; all who share the job want the same of it.
    let request: ImageRequest
    /// When the first asked.
    let began: MonotonicTime
    /// Since when its bytes wait to be decoded.
    var loadedAt: MonotonicTime?
    var phase: Phase
    var priority: ImagePriority
    var waiters: [Int: (waiter: ImageWaiter, priority: ImagePriority)] = [:]
    /// How often its bytes turned out not to be a picture.
    var damages = 0
    /// The detail of the next preview.
    var previewDetail = 1
    var previewsFrom = 0
}

/// A failure that is remembered for a short time.
struct RememberedFailure {
    let error: ImageError
    let until: MonotonicTime
}

/// All that the pipeline knows. Changed under its lock only.
struct ImagePipelineState {
    var loads: [ImageLoadKey: ImageLoadJob] = [:]
    var jobs: [ImageJobKey: ImageJob] = [:]
    var waitingLoads = ImageQueue<ImageLoadKey>()
    var waitingJobs = ImageQueue<ImageJobKey>()
    /// Those that were cancelled and have not ended yet among them.
    var runningLoads = 0
    var runningDecodes = 0
    var loadsMaximum: Int
    var decodesMaximum: Int
    var isPrefetchPaused = false
    var quality = 1.0
    var epoch = 0
    var failures: [ImageSourceKey: RememberedFailure] = [:]
    /// Parts of files, oldest first.
    var partials: [(key: ImageSourceKey, partial: PartialImage)] = []
    private var lastSerial = 0

    init(loadsMaximum: Int, decodesMaximum: Int) {
        self.loadsMaximum = loadsMaximum
        self.decodesMaximum = decodesMaximum
    }

    mutating func serial() -> Int {
        lastSerial += 1
        return lastSerial
    }

    mutating func takePartial(_ key: ImageSourceKey) -> PartialImage? {
        guard let index = partials.firstIndex(where: { $0.key == key }) else { return nil }
        return partials.remove(at: index).partial
    }

    mutating func keep(_ partial: PartialImage, for key: ImageSourceKey, bytesMaximum: Int) {
        _ = takePartial(key)
        guard partial.bytes.count <= bytesMaximum else { return }
        partials.append((key, partial))
        var sum = partials.reduce(0) { $0 + $1.partial.bytes.count }
        while sum > bytesMaximum { sum -= partials.removeFirst().partial.bytes.count }
    }

    mutating func remember(_ error: ImageError, for key: ImageSourceKey, now: MonotonicTime, until: MonotonicTime) {
        if failures.count >= 256 { failures = failures.filter { $0.value.until > now } }
        // Where a thousand different pictures fail within seconds, forgetting is the better half of remembering.
        if failures.count >= 1_024 { failures = [:] }
        failures[key] = RememberedFailure(error: error, until: until)
    }
}
