import LarderTime
import Synchronization

/// The load of an item of a list. That of a visible item is tried again after a failure that may pass, by the retry policy of the
/// pipeline and not before the failure is forgotten. Safe from any thread; releasing it cancels the load.
final class ListItemLoad: Sendable {
    private struct State {
        var task: ImageTask
        /// Waits for the end of the task; nil if the load is tried once.
        var watcher: Task<Void, Never>?
        /// The number of restarts: what an earlier watcher does is ignored.
        var restarts = 0
        var isCancelled = false
    }

    /// As the list asked for it; the target of `task` may be smaller.
    let request: ImageRequest
    private let pipeline: ImagePipeline
    private let onRecovery: (@Sendable () -> Void)?
    private let state: Mutex<State>

    /// Starts the load.
    ///
    /// - Parameters:
    ///   - request: is retried if its priority is not `.prefetch`.
    ///   - onRecovery: called when the picture has been loaded after a failure.
    init(_ request: ImageRequest, _ pipeline: ImagePipeline, onRecovery: (@Sendable () -> Void)?) {
        self.request = request
        self.pipeline = pipeline
        self.onRecovery = onRecovery
        let task = pipeline.start(request, placeholder: false, keepsPicture: false)
        state = Mutex(State(task: task))
        if request.priority != .prefetch { watch(task.waiter, hasFailed: false, restarts: 0) }
    }

    deinit { cancel() }

    /// Whether another request would load the same.
    func loads(_ other: ImageRequest) -> Bool {
        request.priority == other.priority && request.cache == other.cache
            && ImageResultKey(request, target: request.target) == ImageResultKey(other, target: other.target)
    }

    /// Whether the download runs, or has ended and its decode has not.
    var hasBegun: Bool { pipeline.hasBegun(state.withLock { $0.task }) }

    func cancel() {
        let (task, watcher) = state.withLock { state in
            state.isCancelled = true
            return (state.task, state.watcher)
        }
        watcher?.cancel()
        task.cancel()
    }

    /// Tries a visible item at once that has failed or waits to be tried again, as often as the retry policy allows.
    func restartIfFailed() {
        let watched = state.withLock { state -> (Task<Void, Never>, Int)? in
            guard let watcher = state.watcher, state.task.waiter.error?.isTransient ?? false else { return nil }
            state.restarts += 1
            return (watcher, state.restarts)
        }
        guard let (watcher, restarts) = watched else { return }
        watcher.cancel()
        if let waiter = startAgain(restarts) { watch(waiter, hasFailed: true, restarts: restarts) }
    }

    /// Replaces the task that has failed. Returns nil if the load was cancelled or restarted meanwhile.
    private func startAgain(_ restarts: Int) -> ImageWaiter? {
        let task = pipeline.start(request, placeholder: false, keepsPicture: false)
        // The task that is not kept is released, and with it its request: without the lock, because the pipeline then reports events.
        let replaced = state.withLock { state -> ImageTask? in
            guard !state.isCancelled, state.restarts == restarts else { return nil }
            defer { state.task = task }
            return state.task
        }
        return replaced == nil ? nil : task.waiter
    }

    private func watch(_ first: ImageWaiter, hasFailed: Bool, restarts: Int) {
        let watcher = Task.detached { [weak self, pipeline, request] in
            let uptime = pipeline.configuration.uptime
            var waiter = first
            var (failures, since) = (0, uptime.uptime)
            while let error = await waiter.failure() {
                failures += 1
                let now = uptime.uptime
                if failures == 1 { since = now }
                let wait = pipeline.loader.retry.wait(idle: failures, tries: 0, asked: .zero, elapsed: now - since)
                guard let wait, error.isTransient, !Task.isCancelled else { return }
                do {
                    try await uptime.sleep(until: max(now + wait, pipeline.failureEnd(request) ?? now))
                } catch {
                    return
                }
                guard let next = self?.startAgain(restarts) else { return }
                waiter = next
            }
            if hasFailed || failures > 0 { self?.onRecovery?() }
        }
        let isCurrent = state.withLock { state in
            guard !state.isCancelled, state.restarts == restarts else { return false }
            state.watcher = watcher
            return true
        }
        if !isCurrent { watcher.cancel() }
    }
}

extension ImagePipeline {
    /// Whether the download of a task's picture runs, or has ended and its decode has not.
    func hasBegun(_ task: ImageTask) -> Bool {
        state.withLock { state in
            guard let key = task.job, let job = state.jobs[key] else { return false }
            guard case .loading(let load) = job.phase else { return true }
            if case .running = state.loads[load]?.phase { return true }
            return false
        }
    }

    /// The time until which requests for the same file fail at once; nil if no failure is remembered.
    func failureEnd(_ request: ImageRequest) -> MonotonicTime? {
        state.withLock { $0.failures[ImageSourceKey(request)]?.until }
    }
}
