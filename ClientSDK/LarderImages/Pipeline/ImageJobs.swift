import LarderTime

/// A waiting or running download.
struct ImageLoadJob {
    enum Phase {
        case queued
        case running(Task<Void, Never>)
    }

    /// Distinguishes it from earlier and later downloads of the same bytes: reports of a cancelled one are ignored.
    let serial: Int
    var phase = Phase.queued
    var priority: ImageRequest.Priority
    /// The jobs that decode its bytes.
    var dependents: Set<ImageJobKey>
}

/// A waiting or running decode.
struct ImageJob {
    enum Phase {
        case loading(ImageLoadKey)
        case waitingForIdle(LoadedImage)
        case queued(LoadedImage)
        case running(Task<Void, Never>)
    }

    let serial: Int
    /// The first request; all requests of a job want the same result.
    let request: ImageRequest
    /// The time of the first request.
    let began: MonotonicTime
    /// The time at which its bytes were complete.
    var loadedAt: MonotonicTime?
    var phase: Phase
    var priority: ImageRequest.Priority
    var waiters: [Int: (waiter: ImageWaiter, priority: ImageRequest.Priority)] = [:]
    /// The redirects that were followed.
    var hops: [ImageRedirect] = []
    /// Whether its bytes were damaged and are fetched again.
    var isRepeated = false
    /// The running preview.
    var preview: Task<Void, Never>?
    /// The detail of the last preview; 0 before the first one.
    var previewDetail = 0
    var previewsFrom = 0
}

/// A recent failure: requests before `until` fail with it at once.
struct RememberedFailure {
    var error: ImageError
    let until: MonotonicTime
}

/// The state of the pipeline. Changed under its lock only.
struct ImagePipelineState {
    var loads: [ImageLoadKey: ImageLoadJob] = [:]
    var jobs: [ImageJobKey: ImageJob] = [:]
    /// The number of running downloads, including cancelled ones that have not ended yet.
    var runningLoads = 0
    var runningDecodes = 0
    var loadsMaximum: Int
    var decodesMaximum: Int
    var isPrefetchPaused = false
    /// Whether new requests fail.
    var isClosed = false
    var quality = 1.0
    var epoch = 0
    var failures: [ImageSourceKey: RememberedFailure] = [:]
    private var lastSerial = 0

    init(loadsMaximum: Int, decodesMaximum: Int) {
        self.loadsMaximum = loadsMaximum
        self.decodesMaximum = decodesMaximum
    }

    mutating func serial() -> Int {
        lastSerial += 1
        return lastSerial
    }

    /// The next waiting download, by priority and then by arrival.
    func nextLoad(downTo lowest: ImageRequest.Priority) -> ImageLoadKey? {
        Self.next(loads, downTo: lowest) { load in
            if case .queued = load.phase { (load.priority, load.serial) } else { nil }
        }
    }

    /// The next waiting decode, by priority and then by arrival.
    func nextJob(downTo lowest: ImageRequest.Priority) -> ImageJobKey? {
        Self.next(jobs, downTo: lowest) { job in
            if case .queued = job.phase { (job.priority, job.serial) } else { nil }
        }
    }

    /// The bytes of the loaded files of this priority and above that wait to be decoded.
    func undecodedBytes(from lowest: ImageRequest.Priority) -> Int {
        jobs.values.reduce(0) { sum, job in
            switch job.phase {
            case .queued(let loaded) where job.priority >= lowest: sum + loaded.bytes.count
            case .waitingForIdle(let loaded) where job.priority >= lowest: sum + loaded.bytes.count
            default: sum
            }
        }
    }

    private static func next<Key, Work>(
        _ all: [Key: Work],
        downTo lowest: ImageRequest.Priority,
        _ place: (Work) -> (priority: ImageRequest.Priority, serial: Int)?
    ) -> Key? {
        var first: (key: Key, priority: ImageRequest.Priority, serial: Int)?
        for (key, work) in all {
            guard let (priority, serial) = place(work), priority >= lowest else { continue }
            if let first, (first.priority, -first.serial) > (priority, -serial) { continue }
            first = (key, priority, serial)
        }
        return first?.key
    }

    /// The failure with which a request ends at once; nil if it is not remembered any more, or says nothing about the request, because that
    /// reads no disk or sends nothing.
    mutating func remembered(
        _ key: ImageSourceKey,
        _ options: ImageRequest.CacheOptions,
        now: MonotonicTime
    ) -> RememberedFailure? {
        guard options.isDisjoint(with: [.skipDiskRead, .onlyCached]), var failure = failures[key] else { return nil }
        guard now < failure.until else {
            failures[key] = nil
            return nil
        }
        failure.error.isRemembered = true
        return failure
    }

    mutating func remember(_ error: ImageError, for key: ImageSourceKey, until: MonotonicTime) {
        // Bounded: with 1,024 failures within seconds, all of them are forgotten.
        if failures.count >= 1_024 { failures = [:] }
        failures[key] = RememberedFailure(error: error, until: until)
    }
}
