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
    private let onPicture: (@Sendable () -> Void)?

    /// - Parameters:
    ///   - keepsPictures: false if only the end is needed: a list of prefetched pictures must not hold their pixels.
    ///   - onPicture: called when the picture has arrived, while no lock is held.
    init(keepsPictures: Bool = true, onPicture: (@Sendable () -> Void)? = nil) {
        self.keepsPictures = keepsPictures
        self.onPicture = onPicture
    }

    func show(_ stage: ImageTask.Stage) {
        let isPicture = change { state in
            if keepsPictures { state.stage = stage }
            state.number += 1
            if case .image = stage { state.isEnded = true }
        }
        if isPicture { onPicture?() }
    }

    func fail(_ error: ImageError) {
        change { state in
            state.error = error
            state.isEnded = true
        }
    }

    /// Changes the state unless it has ended. Returns whether it ends.
    @discardableResult private func change(_ body: (inout State) -> Void) -> Bool {
        let (sleepers, ends) = state.withLock { state -> ([Pending<Void>], Bool) in
            guard !state.isEnded else { return ([], false) }
            body(&state)
            defer { state.sleepers = [] }
            return (state.sleepers, state.isEnded)
        }
        for sleeper in sleepers { sleeper.finish(()) }
        return ends
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
