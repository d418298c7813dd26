import Dispatch
import Synchronization

/// A descriptor whose input a test waits for.
///
/// No thread of Swift's pool is blocked or kept busy: two tests that wait could otherwise stop all others on a machine of two cores.
enum Readable {
    /// Waits until a descriptor has input, a connection or its end.
    ///
    /// - Returns: false if the task is cancelled first.
    static func wait(_ descriptor: Int32) async -> Bool {
        guard !Task.isCancelled else { return false }
        // A source may be cancelled from any thread; its handlers are set before it is activated.
        nonisolated(unsafe) let waiting = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: .global())
        let isReadable = Mutex(false)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                unsafe waiting.setEventHandler {
                    isReadable.withLock { $0 = true }
                    unsafe waiting.cancel()
                }
                // The descriptor is not watched any more, and may be closed.
                unsafe waiting.setCancelHandler { continuation.resume(returning: isReadable.withLock { $0 }) }
                unsafe waiting.activate()
            }
        } onCancel: {
            unsafe waiting.cancel()
        }
    }
}
