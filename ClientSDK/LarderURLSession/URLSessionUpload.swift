import Foundation
import LarderTime
import LarderTransport
import Synchronization

/// A body that a session sends from a file: its own, or a temporary one with the pieces of a sequence.
///
/// A session cannot read a body from a task: Foundation on Linux reads a stream on a queue that all sessions of the process share, and
/// a stream without a piece would block it.
final class URLSessionUpload: Sendable {
    private let body: RequestBody
    private let length: Int?
    private let isTemporary: Bool
    private let lastProgress = Mutex<MonotonicTime?>(nil)
    /// The file to send.
    let url: URL

    /// Copies the body to a temporary file unless it is a file.
    ///
    /// - Throws: `.bodyNotReplayable`, `.bodyFailed` or `.cancelled`.
    init(_ body: RequestBody, length: Int?) async throws(TransportError) {
        self.body = body
        self.length = length
        isTemporary = body.filePath == nil
        url =
            body.filePath.map { URL(fileURLWithPath: $0) }
            ?? FileManager.default.temporaryDirectory.appendingPathComponent("larder-upload-\(UUID().uuidString)")
        // Complete from here on, so that `deinit` removes the file if copying fails.
        if isTemporary { try await copy() }
    }

    deinit {
        // A file that is gone needs no removal.
        if isTemporary { try? FileManager.default.removeItem(at: url) }
    }

    private func copy() async throws(TransportError) {
        let path = url.path
        guard FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600]),
            let file = FileHandle(forWritingAtPath: path)
        else { throw Self.failure(path, "cannot be created") }
        var failure: TransportError?
        let isWhole = try await body.write(length, reports: false) { piece, _ in
            do {
                try file.write(contentsOf: Data(piece))
                return true
            } catch {
                failure = Self.failure(path, "cannot be written: \(error)")
                return false
            }
        }
        do { try file.close() } catch { failure = failure ?? Self.failure(path, "cannot be written: \(error)") }
        if let failure { throw failure }
        guard isWhole else { throw Self.failure(path, "is not complete") }
    }

    private static func failure(_ path: String, _ reason: String) -> TransportError {
        TransportError(
            .bodyFailed,
            "The temporary file '\(path)' of the body \(reason). Nothing was sent; free some space."
        )
    }

    /// Notes that the session has sent so many bytes.
    func sent(_ count: Int, _ clock: any MonotonicClock) {
        lastProgress.withLock { $0 = clock.uptime }
        body.note(count, length ?? count)
    }

    /// Runs `work`, but not beyond the time in which nothing was sent.
    ///
    /// - Returns: nil if that time came first.
    func untilIdle<Value: Sendable>(
        for timeout: Duration,
        _ clock: any MonotonicClock & Sleeper,
        _ work: @escaping @Sendable () async -> Value
    ) async -> Value? {
        let start = clock.uptime
        return await withTaskGroup(of: IdleEnd<Value>.self) { group in
            group.addTask { .done(await work()) }
            group.addTask {
                while true {
                    let begin = self.lastProgress.withLock { $0 } ?? start
                    guard clock.uptime < begin + timeout else { return .late }
                    do { try await clock.sleep(until: begin + timeout) } catch { return .cancelled }
                }
            }
            defer { group.cancelAll() }
            while let end = await group.next() {
                switch end {
                case .done(let value): return value
                case .late: return nil
                case .cancelled: continue
                }
            }
            return nil
        }
    }
}

private enum IdleEnd<Value: Sendable>: Sendable {
    case done(Value)
    case late
    case cancelled
}
