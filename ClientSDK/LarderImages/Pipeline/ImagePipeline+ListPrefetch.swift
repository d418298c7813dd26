import Synchronization

extension ImagePipeline {
    /// Loads the pictures of a list around its visible range: the visible ones first, then a window in the direction of movement.
    ///
    ///     let prefetch = ImagePipeline.ListPrefetch(pipeline) { row in rows[row].imageRequest }
    ///     prefetch.show(20..<28, of: rows.count)   // whenever the visible range has changed
    ///
    /// Each item is handled alone: one that enters the window is requested, one that becomes visible is raised to `.high`, and one that
    /// has left is cancelled. Loading stops when this is cancelled or released. Safe from any thread; a call costs a step for each item
    /// that is visible or in the window.
    public final class ListPrefetch: Sendable {
        /// How far to load beyond the visible range.
        public struct Window: Sendable, Hashable {
            /// The maximum number of items after the visible range, in the direction of movement.
            public var aheadMaximum = 12
            /// The maximum number of items on its other side.
            public var behindMaximum = 4
            /// The maximum number of bytes of pixels of the items beyond the visible range, by the targets of their requests. A request
            /// without a target counts as 4 MiB.
            public var bytesMaximum = 24 << 20
            /// Whether a download that has begun is finished after its item has left the window.
            public var finishesBegun = false

            /// Creates a window of 12 items ahead and 4 behind, of 24 MiB.
            public init() {}
        }

        private struct Item {
            var task: ImageTask
            var isVisible: Bool
        }

        private struct State {
            var items: [Int: Item] = [:]
            /// Tasks of items that have left while their download ran.
            var finishing: [ImageTask] = []
            var visible = 0..<0
            var count = 0
            var movesForward = true
            var share = 1.0
            var isCancelled = false
            /// Whether a call applies the state; others only change it, and the call applies it again.
            var isApplying = false
            var isChanged = false
        }

        private static let unknownBytes = 4 << 20

        private let pipeline: ImagePipeline
        private let window: Window
        private let request: @Sendable (Int) -> ImageRequest?
        private let state = Mutex(State())

        /// - Parameters:
        ///   - window: how far to load.
        ///   - request: returns the request for an item; nil for an item without picture. Its priority is ignored. Called by `show`,
        ///     while no lock is held.
        public init(
            _ pipeline: ImagePipeline,
            window: Window = Window(),
            request: @escaping @Sendable (Int) -> ImageRequest?
        ) {
            self.pipeline = pipeline
            self.window = window
            self.request = request
        }

        /// Tells which items are visible.
        ///
        /// The direction is that of the last change of the range.
        /// - Parameters:
        ///   - visible: the indices of the visible items.
        ///   - count: the number of items of the list.
        public func show(_ visible: Range<Int>, of count: Int) {
            let count = max(0, count)
            update { state in
                let shown = visible.clamped(to: 0..<count)
                if shown.lowerBound != state.visible.lowerBound {
                    state.movesForward = shown.lowerBound > state.visible.lowerBound
                }
                (state.visible, state.count) = (shown, count)
            }
        }

        /// Scales the window, from 0, which loads only what is visible, to 1: for slow or expensive networks.
        public func setShare(_ share: Double) {
            update { $0.share = share.isNaN ? 1 : min(max(share, 0), 1) }
        }

        /// Cancels all loads. Later calls have no effect.
        public func cancel() {
            let tasks = state.withLock { state in
                state.isCancelled = true
                let tasks = state.items.values.map(\.task) + state.finishing
                (state.items, state.finishing) = ([:], [])
                return tasks
            }
            for task in tasks { task.cancel() }
        }

        /// The items that are loaded or being loaded, most urgent first.
        private func wanted(_ state: State) -> [(index: Int, request: ImageRequest)] {
            var wanted: [(Int, ImageRequest)] = []
            for index in state.visible {
                guard var request = request(index) else { continue }
                request.priority = .high
                wanted.append((index, request))
            }
            guard !state.visible.isEmpty else { return wanted }
            func scaled(_ count: Int) -> Int { ImagePipeline.scaled(max(0, count), by: state.share) }
            let (ahead, behind) = (scaled(window.aheadMaximum), scaled(window.behindMaximum))
            let (after, before) = state.movesForward ? (ahead, behind) : (behind, ahead)
            let (lower, upper) = (state.visible.lowerBound, state.visible.upperBound)
            let following = Array(upper..<upper + min(after, max(0, state.count - upper)))
            let preceding = Array((lower - min(before, lower)..<lower).reversed())
            var bytesLeft = scaled(window.bytesMaximum)
            for index in state.movesForward ? following + preceding : preceding + following {
                guard var request = request(index) else { continue }
                let pixels = request.target.map { $0.width.multipliedReportingOverflow(by: $0.height) }
                let bytes = pixels.map {
                    $0.overflow ? ($0.partialValue, true) : $0.partialValue.multipliedReportingOverflow(by: 4)
                }
                if bytes?.1 ?? false { break }
                bytesLeft -= min(bytesLeft + 1, bytes?.0 ?? Self.unknownBytes)
                if bytesLeft < 0 { break }
                request.priority = .prefetch
                wanted.append((index, request))
            }
            return wanted
        }

        private func update(_ change: (inout State) -> Void) {
            var next = state.withLock { state -> State? in
                change(&state)
                state.isChanged = true
                guard !state.isApplying, !state.isCancelled else { return nil }
                (state.isApplying, state.isChanged) = (true, false)
                return state
            }
            while let state = next { next = apply(state) }
        }

        /// Requests and cancels what differs from the state. Returns the state if it was changed meanwhile.
        private func apply(_ state: State) -> State? {
            var left = state.items
            var items: [Int: Item] = [:]
            for (index, request) in wanted(state) {
                let isVisible = request.priority == .high
                if let known = left[index], known.isVisible == isVisible, known.task.request.url == request.url {
                    items[index] = left.removeValue(forKey: index)
                } else {
                    // The new request joins the old one before that is cancelled.
                    let task = pipeline.start(request, placeholder: false, keepsPicture: false)
                    items[index] = Item(task: task, isVisible: isVisible)
                }
            }
            var finishing = state.finishing.filter { pipeline.hasBegun($0.request) }
            var cancelled: [ImageTask] = []
            for (index, item) in left {
                // One that was requested again with another priority is not finished for itself.
                if window.finishesBegun, items[index] == nil, pipeline.hasBegun(item.task.request) {
                    finishing.append(item.task)
                } else {
                    cancelled.append(item.task)
                }
            }
            let (next, isCancelled) = self.state.withLock { state -> (State?, Bool) in
                guard !state.isCancelled else { return (nil, true) }
                (state.items, state.finishing) = (items, finishing)
                state.isApplying = state.isChanged
                state.isChanged = false
                return (state.isApplying ? state : nil, false)
            }
            if isCancelled { cancelled += items.values.map(\.task) + finishing }
            for task in cancelled { task.cancel() }
            return next
        }
    }
}

extension ImagePipeline {
    /// Whether the download of a request's picture runs, or has ended and its decode has not.
    func hasBegun(_ request: ImageRequest) -> Bool {
        state.withLock { state in
            let result = ImageResultKey(request, target: request.target)
            let key = ImageJobKey(result: result, options: request.cache, epoch: state.epoch)
            guard let job = state.jobs[key] else { return false }
            guard case .loading(let load) = job.phase else { return true }
            if case .running = state.loads[load]?.phase { return true }
            return false
        }
    }
}
