import Foundation
import LarderTLS
import LarderTime
import Synchronization

/// The TLS client of a transport and its WebSockets, made when it is first needed, because that may read many files.
final class LazyTLSClient: Sendable {
    private typealias Made = Result<TLSClient, TLSError>

    private let settings: TLSSettings
    private let client = Mutex<TLSClient?>(nil)

    init(_ settings: TLSSettings) { self.settings = settings }

    /// The client. Files are read on a thread of their own.
    ///
    /// - Returns: nil if the calling task was cancelled.
    func get() async throws(TLSError) -> TLSClient? {
        if let made = client.withLock({ $0 }) { return made }
        guard settings.readFiles else { return try make() }
        let pending = Pending<Made?>()
        let thread = Thread { pending.finish(Result { () throws(TLSError) in try self.make() }) }
        thread.name = "larder-roots"
        thread.start()
        return try await pending.value(ifCancelled: nil)?.get()
    }

    /// Sessions are resumed only by the client that made them, so the first one counts.
    private func make() throws(TLSError) -> TLSClient {
        let new = try TLSClient(settings)
        return client.withLock { client in
            let made = client ?? new
            client = made
            return made
        }
    }
}

extension SocketCall.Outcome: SocketWriteOutcome {
    static func failed(_ error: TLSError) -> Self { .failed(error.description) }

    var acceptedCount: Int? { if case .count(let count) = self { count } else { nil } }
}
