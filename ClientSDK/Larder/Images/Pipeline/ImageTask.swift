/// The token of one who waits for a picture. Safe from any task.
///
/// Work stops when the last token for it has been cancelled or released; until then it has the highest priority of its tokens.
/// A token holds its picture, and its pipeline, for as long as it lives.
public final class ImageTask: Sendable {
    /// What was asked for.
    public let request: ImageRequest
    let waiter: ImageWaiter
    private let leave: @Sendable () -> Void
    private let prioritise: @Sendable (ImagePriority) -> Void

    init(
        _ request: ImageRequest,
        _ waiter: ImageWaiter,
        leave: @escaping @Sendable () -> Void,
        prioritise: @escaping @Sendable (ImagePriority) -> Void
    ) {
        self.request = request
        self.waiter = waiter
        self.leave = leave
        self.prioritise = prioritise
    }

    deinit { leave() }

    /// Waits no more: whoever awaits the picture gets `.cancelled`, also if it comes at the same moment.
    public func cancel() {
        waiter.fail(.cancelled)
        leave()
    }

    /// Wants it sooner, or can wait longer.
    public func setPriority(_ priority: ImagePriority) { prioritise(priority) }

    /// The picture. Cancelling the task that awaits it ends its waiting, not that of others.
    public var image: DecodedImage {
        get async throws(ImageError) { try await waiter.image().get().0 }
    }

    /// The stages of the picture, from the newest there is.
    public var stages: ImageStages { ImageStages(task: self) }
}

/// Pictures that will be wanted. They go on being fetched until this is cancelled or released; what is asked for meanwhile
/// joins them and raises their priority.
public final class ImagePrefetch: Sendable {
    private let tasks: [ImageTask]

    init(_ tasks: [ImageTask]) { self.tasks = tasks }

    /// Wants none of them any more.
    public func cancel() { for task in tasks { task.cancel() } }

    /// Returns when each is there or has failed; says how many are there.
    public func finish() async -> Int {
        var count = 0
        for task in tasks {
            if await task.waiter.isThere() { count += 1 }
        }
        return count
    }
}
