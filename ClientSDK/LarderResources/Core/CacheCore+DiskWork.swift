import LarderEvents

/// Where asynchronous functions wait for the disk: on the threads of two executors, so that a read never queues behind a commit. Without
/// a disk they run where the runtime decides.
///
/// Only the part of a function that may touch the disk runs there, never a source or an operation of the app.
extension CacheCore {
    /// Runs a part that reads the disk.
    nonisolated(nonsending) func reading<Result: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await withTaskExecutorPreference(reads, operation: body)
    }

    /// Runs a part that changes the disk.
    nonisolated(nonsending) func changing<Result: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await withTaskExecutorPreference(changes, operation: body)
    }

    /// Whether no part waits or runs.
    package var isDiskIdle: Bool { (reads?.isIdle ?? true) && (changes?.isIdle ?? true) }
}
