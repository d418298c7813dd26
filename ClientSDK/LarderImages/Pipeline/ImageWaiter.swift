import LarderEvents
import LarderTime
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
        var sleepers: [Pending<Void>] = []
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
            defer { state.sleepers = [] }
            return state.sleepers
        }
        for sleeper in sleepers { sleeper.finish(()) }
    }

    /// The next stage; nil after the last one; a failure with the error that ended the request.
    func stage(after seen: Int) async -> Result<(Int, ImageTask.Stage)?, ImageError> {
        while true {
            let sleeper = Pending<Void>()
            let known = state.withLock { state -> Result<(Int, ImageTask.Stage)?, ImageError>? in
                if let error = state.error { return .failure(error) }
                if state.number > seen, let stage = state.stage { return .success((state.number, stage)) }
                if state.isEnded { return .success(nil) }
                if Task.isCancelled { return .failure(.cancelled) }
                state.sleepers.append(sleeper)
                return nil
            }
            if let known { return known }
            await sleeper.value(ifCancelled: ()) { state.withLock { $0.sleepers.removeAll { $0 === sleeper } } }
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
}
