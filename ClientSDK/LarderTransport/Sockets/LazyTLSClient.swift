import LarderTLS
import Synchronization

/// The TLS client of a transport, made when it is first needed: reading the system's roots takes a millisecond.
final class LazyTLSClient: Sendable {
    private let settings: TLSSettings
    private let made = Mutex<Result<TLSClient, TLSError>?>(nil)

    init(_ settings: TLSSettings) { self.settings = settings }

    /// The client. Safe from any thread; it may read files.
    func get() throws(TLSError) -> TLSClient {
        let client = made.withLock { made in
            if case .success(let client)? = made { return Result<TLSClient, TLSError>.success(client) }
            let result = Result { () throws(TLSError) in try TLSClient(settings) }
            made = result
            return result
        }
        return try client.get()
    }
}

extension SocketCall.Outcome: SocketWriteOutcome {
    static func failed(_ error: TLSError) -> Self { .failed(error.description) }

    var acceptedCount: Int? { if case .count(let count) = self { count } else { nil } }
}
