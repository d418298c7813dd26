import LarderEvents
import Synchronization

/// The stages of one request's picture, and the tasks that wait for the next stage. Safe from any thread.
///
/// The first end (picture, error or cancellation) is final; later stages are dropped.
final class ImageWaiter: Sendable {
    private struct State {
        var stage: ImageTask.Stage?
        /// The number of stages so far.
        var number = 0
        var error: ImageError?
        var isEnded = false
        var sleepers: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var lastSleeper: UInt64 = 0
    }

    private let state = Mutex(State())
    private let keepsPictures: Bool

    /// - Parameter keepsPictures: false if only the end is needed: a list of prefetched pictures must not hold their pixels.
    init(keepsPictures: Bool = true) { self.keepsPictures = keepsPictures }

    func show(_ stage: ImageTask.Stage) {
        wake { state in
            guard !state.isEnded else { return }
            if keepsPictures { state.stage = stage }
            state.number += 1
            if case .image = stage { state.isEnded = true }
        }
    }

    func fail(_ error: ImageError) {
        wake { state in
            guard !state.isEnded else { return }
            state.error = error
            state.isEnded = true
        }
    }

    private func wake(_ change: (inout State) -> Void) {
        let sleepers = state.withLock { state in
            change(&state)
            defer { state.sleepers = [:] }
            return state.sleepers.values.map { $0 }
        }
        for sleeper in sleepers { sleeper.resume() }
    }

    /// The next stage; nil after the last one; a failure with the error that ended the request.
    func stage(after seen: Int) async -> Result<(Int, ImageTask.Stage)?, ImageError> {
        while true {
            let known = state.withLock { state -> Result<(Int, ImageTask.Stage)?, ImageError>? in
                if let error = state.error { return .failure(error) }
                if state.number > seen, let stage = state.stage { return .success((state.number, stage)) }
                return state.isEnded ? .success(nil) : nil
            }
            if let known { return known }
            if Task.isCancelled { return .failure(.cancelled) }
            await change(after: seen)
        }
    }

    /// The error that ended the request; nil while it has not ended, and if the picture arrived.
    var error: ImageError? { state.withLock { $0.error } }

    /// Waits until the request has ended. Returns nil if the picture arrived.
    func failure() async -> ImageError? {
        switch await stage(after: .max) {
        case .success: nil
        case .failure(let error): error
        }
    }

    /// The picture.
    func image() async -> Result<(DecodedImage, CacheTier), ImageError> {
        var seen = 0
        while true {
            switch await stage(after: seen) {
            case .failure(let error): return .failure(error)
            case .success(let (number, stage)?):
                if case .image(let image, let origin) = stage { return .success((image, origin)) }
                seen = number
            case .success(nil): return .failure(.cancelled)
            }
        }
    }

    /// Suspends until something changes or the calling task is cancelled.
    private func change(after seen: Int) async {
        let id = state.withLock { state in
            state.lastSleeper += 1
            return state.lastSleeper
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isAwake = state.withLock { state in
                    // The task may have been cancelled before the continuation was stored.
                    if state.isEnded || state.number > seen || Task.isCancelled { return true }
                    state.sleepers[id] = continuation
                    return false
                }
                if isAwake { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: id) }?.resume()
        }
    }
}
