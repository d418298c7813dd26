import LarderTime
import Synchronization

extension ImagePipeline {
    /// Loads the pictures of a list around its visible range: the visible ones first, then a window in the direction of movement.
    ///
    /// ```swift
    /// let urls = ["http://127.0.0.1:8080/lake.jpg", "http://127.0.0.1:8080/hill.jpg"]
    /// let prefetch = ImagePipeline.ListPrefetch(client.images) { row in ImageRequest(url: urls[row]) }
    /// prefetch.show(0..<1, of: urls.count)   // whenever the visible range has changed
    /// ```
    ///
    /// Each item is handled alone: one that enters the window is requested, one that becomes visible is raised to `.high`, and one that
    /// has left is cancelled. A visible one that fails is requested again once the failure is no longer remembered
    /// (`negativeLifetime`), up to the attempts of `Configuration.retry`, and when the network is back (`forgetFailures()`); one that is
    /// only prefetched is not. Loading stops when this is cancelled or released. Safe from any thread; a call costs a step for each
    /// item that is visible or in the window.
    public final class ListPrefetch: Sendable {
        private struct Item {
            /// As the list asked for it; the target of `task` may be smaller.
            let request: ImageRequest
            let task: ImageTask
            /// The number of failures before.
            let failures: Int

            /// Whether another request would load the same.
            func loads(_ other: ImageRequest) -> Bool {
                request.priority == other.priority && request.cache == other.cache
                    && ImageResultKey(request, target: request.target) == ImageResultKey(other, target: other.target)
            }
        }

        private struct State {
            var items: [Int: Item] = [:]
            /// Items that have left while their download ran.
            var finishing: [Item] = []
            var visible = 0..<0
            var count = 0
            var movesForward = true
            var isCancelled = false
            /// Whether a call applies the state; others only change it, and the call applies it again.
            var isApplying = false
            var isChanged = false
            /// Whether visible items that have failed are requested again, however often they have.
            var forgivesFailures = false

            /// The state to apply.
            mutating func take() -> State {
                (isApplying, isChanged) = (true, false)
                defer { forgivesFailures = false }
                return self
            }
        }

        private static let unknownBytes = 4 << 20

        private let pipeline: ImagePipeline
        private let aheadMaximum: Int
        private let behindMaximum: Int
        private let bytesMaximum: Int
        private let finishesBegun: Bool
        private let onRecovery: (@Sendable (Int) -> Void)?
        private let request: @Sendable (Int) -> ImageRequest?
        private let state = Mutex(State())

        /// - Parameters:
        ///   - pipeline: loads the pictures.
        ///   - aheadMaximum: the maximum number of items to load after the visible range, in the direction of movement.
        ///   - behindMaximum: the maximum number of items on its other side.
        ///   - bytesMaximum: the maximum number of bytes of pixels of the items beyond the visible range, by the targets of their
        ///     requests. A request without a target counts as 4 MiB.
        ///   - finishesBegun: whether a download that has begun is finished after its item has left the window.
        ///   - onRecovery: called with the index of a visible item whose picture has been loaded after a failure, on any thread, while
        ///     no lock is held: request the picture again to show it.
        ///   - request: returns the request for an item; nil for an item without picture. Its priority is ignored. Called by `show`, and
        ///     when the share of the pipeline changes or failures are forgotten, on any thread, while no lock is held.
        public init(
            _ pipeline: ImagePipeline,
            aheadMaximum: Int = 12,
            behindMaximum: Int = 4,
            bytesMaximum: Int = 24 << 20,
            finishesBegun: Bool = false,
            onRecovery: (@Sendable (Int) -> Void)? = nil,
            request: @escaping @Sendable (Int) -> ImageRequest?
        ) {
            self.pipeline = pipeline
            self.aheadMaximum = aheadMaximum
            self.behindMaximum = behindMaximum
            self.bytesMaximum = bytesMaximum
            self.finishesBegun = finishesBegun
            self.onRecovery = onRecovery
            self.request = request
            pipeline.lists.add(self)
        }

        deinit { pipeline.lists.remove(ObjectIdentifier(self)) }

        /// Tells which items are visible.
        ///
        /// The direction is that of the last change of the range, which counts as scrolling (`Configuration.onScroll`).
        /// - Parameters:
        ///   - visible: the indices of the visible items.
        ///   - count: the number of items of the list.
        public func show(_ visible: Range<Int>, of count: Int) {
            let count = max(0, count)
            let shown = visible.clamped(to: 0..<count)
            let hasMoved = state.withLock { !$0.visible.isEmpty && $0.visible.lowerBound != shown.lowerBound }
            if hasMoved { pipeline.configuration.onScroll?() }
            update { state in
                if shown.lowerBound != state.visible.lowerBound {
                    state.movesForward = shown.lowerBound > state.visible.lowerBound
                }
                (state.visible, state.count) = (shown, count)
            }
        }

        /// Cancels all loads. Later calls have no effect.
        public func cancel() {
            let loads = state.withLock { state in
                state.isCancelled = true
                let loads = Array(state.items.values) + state.finishing
                (state.items, state.finishing) = ([:], [])
                return loads
            }
            for load in loads { load.task.cancel() }
        }

        /// Adapts the window to the share of the pipeline, and requests visible items again whose failure is no longer remembered.
        func refresh() { update { _ in } }

        /// Requests all visible items again that have failed.
        func forgiveFailures() { update { $0.forgivesFailures = true } }

        /// The items that are loaded or being loaded, most urgent first.
        private func wanted(_ state: State) -> [(index: Int, request: ImageRequest)] {
            var wanted: [(Int, ImageRequest)] = []
            for index in state.visible {
                guard var request = request(index) else { continue }
                request.priority = .high
                wanted.append((index, request))
            }
            guard !state.visible.isEmpty else { return wanted }
            let share = pipeline.lists.share
            func scaled(_ count: Int) -> Int { ImagePipeline.scaled(max(0, count), by: share) }
            let (ahead, behind) = (scaled(aheadMaximum), scaled(behindMaximum))
            let (after, before) = state.movesForward ? (ahead, behind) : (behind, ahead)
            let (lower, upper) = (state.visible.lowerBound, state.visible.upperBound)
            let following = Array(upper..<upper + min(after, max(0, state.count - upper)))
            let preceding = Array((lower - min(before, lower)..<lower).reversed())
            var bytesLeft = scaled(bytesMaximum)
            for index in state.movesForward ? following + preceding : preceding + following {
                guard var request = request(index) else { continue }
                let bytes = request.target?.bytesMaximum ?? Self.unknownBytes
                guard bytes <= bytesLeft else { break }
                bytesLeft -= bytes
                request.priority = .prefetch
                wanted.append((index, request))
            }
            return wanted
        }

        private func update(_ change: (inout State) -> Void) {
            var next = state.withLock { state -> State? in
                change(&state)
                state.isChanged = true
                return state.isApplying || state.isCancelled ? nil : state.take()
            }
            while let state = next { next = apply(state) }
        }

        /// Requests and cancels what differs from the state. Returns the state if it was changed meanwhile.
        private func apply(_ state: State) -> State? {
            var left = state.items
            var items: [Int: Item] = [:]
            for (index, request) in wanted(state) {
                let known = left[index].flatMap { $0.loads(request) ? $0 : nil }
                let failures = known.flatMap { failuresToRepeat($0, forgives: state.forgivesFailures) }
                if known != nil, failures == nil {
                    items[index] = left.removeValue(forKey: index)
                } else {
                    // The new request joins the old one before that is cancelled.
                    let recovered = failures == nil ? nil : onRecovery.map { body in { @Sendable in body(index) } }
                    let task = pipeline.start(request, placeholder: false, keepsPicture: false, onPicture: recovered)
                    items[index] = Item(request: request, task: task, failures: failures ?? 0)
                }
            }
            var finishing = state.finishing.filter { pipeline.hasBegun($0.task) }
            var cancelled: [Item] = []
            for (index, load) in left {
                // One that was requested again with another priority is not finished for itself.
                if finishesBegun, items[index] == nil, pipeline.hasBegun(load.task) {
                    finishing.append(load)
                } else {
                    cancelled.append(load)
                }
            }
            let (next, isCancelled) = self.state.withLock { state -> (State?, Bool) in
                guard !state.isCancelled else { return (nil, true) }
                (state.items, state.finishing) = (items, finishing)
                state.isApplying = false
                return (state.isChanged ? state.take() : nil, false)
            }
            if isCancelled { cancelled += Array(items.values) + finishing }
            for load in cancelled { load.task.cancel() }
            return next
        }

        /// The number of failures of a visible item that is to be requested again; nil for others.
        private func failuresToRepeat(_ item: Item, forgives: Bool) -> Int? {
            guard item.request.priority != .prefetch, item.task.waiter.error?.isTransient ?? false else { return nil }
            if forgives { return 1 }
            let failures = item.failures + 1
            return failures < pipeline.configuration.retry.attemptsMaximum && !pipeline.remembers(item.request)
                ? failures : nil
        }
    }

    /// Whether the download of a task's picture runs, or has ended and its decode has not.
    fileprivate func hasBegun(_ task: ImageTask) -> Bool {
        state.withLock { state in
            guard let key = task.job, let job = state.jobs[key] else { return false }
            guard case .loading(let load) = job.phase else { return true }
            if case .running = state.loads[load]?.phase { return true }
            return false
        }
    }

    /// Whether a request would fail at once because of an earlier failure.
    fileprivate func remembers(_ request: ImageRequest) -> Bool {
        let now = configuration.uptime.uptime
        return state.withLock { $0.remembered(ImageSourceKey(request), request.cache, now: now) } != nil
    }

    /// Lets lists request their visible items again when a failure is no longer remembered.
    func refreshLists(at time: MonotonicTime) {
        guard lists.claim(time) else { return }
        Task { [weak self, uptime = configuration.uptime] in
            do { try await uptime.sleep(until: time) } catch { return }
            self?.lists.unclaim(time)
            for list in self?.lists.all ?? [] { list.refresh() }
        }
    }
}

extension ImagePipeline.ListPrefetch {
    /// The lists of a pipeline, and the share of their windows that the network allows. Safe from any thread.
    final class Registry: Sendable {
        private struct Entry {
            let id: ObjectIdentifier
            weak var list: ImagePipeline.ListPrefetch?
        }

        /// In the order of their creation.
        private let state = Mutex<(lists: [Entry], share: Double, due: Set<MonotonicTime>)>(([], 1, []))

        var share: Double { state.withLock { $0.share } }

        var all: [ImagePipeline.ListPrefetch] { state.withLock { $0.lists.compactMap(\.list) } }

        /// Whether the lists are not refreshed at a time yet; they will be, if there are any.
        func claim(_ time: MonotonicTime) -> Bool {
            state.withLock { !$0.lists.isEmpty && $0.due.insert(time).inserted }
        }

        func unclaim(_ time: MonotonicTime) { state.withLock { _ = $0.due.remove(time) } }

        func setShare(_ share: Double) { state.withLock { $0.share = ImagePipeline.bounded(share) } }

        func add(_ list: ImagePipeline.ListPrefetch) {
            state.withLock { $0.lists.append(Entry(id: ObjectIdentifier(list), list: list)) }
        }

        func remove(_ list: ObjectIdentifier) { state.withLock { $0.lists.removeAll { $0.id == list } } }
    }
}
