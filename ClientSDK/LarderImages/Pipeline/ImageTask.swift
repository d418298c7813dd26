/// A request for a picture that is in progress. Safe from any task.
///
/// Work stops when the last task for it is cancelled or released; until then it has the highest priority of its tasks. A task holds
/// its picture and its pipeline while it lives.
public final class ImageTask: Sendable {
    public let request: ImageRequest
    let waiter: ImageWaiter
    /// The job that it joined; nil if it ended at once.
    let job: ImageJobKey?
    private let leave: @Sendable () -> Void

    init(_ request: ImageRequest, _ waiter: ImageWaiter, _ job: ImageJobKey?, leave: @escaping @Sendable () -> Void) {
        self.request = request
        self.waiter = waiter
        self.job = job
        self.leave = leave
    }

    deinit { leave() }

    /// Cancels the request: awaiting its picture throws `.cancelled`, even if the picture arrives at the same moment.
    public func cancel() {
        waiter.fail(.cancelled)
        leave()
    }

    /// The picture. Cancelling a Swift task that awaits it ends only that wait.
    public var image: DecodedImage {
        get async throws(ImageError) { try await waiter.image().get().0 }
    }

    /// The stages of the picture as they arrive; the last one is the picture, or an error is thrown.
    ///
    /// A late reader gets the newest stage first and all that follow. Several readers are independent.
    public var stages: some AsyncSequence<ImageTask.Stage, ImageError> & Sendable { Stages(task: self) }
}
