import Foundation
import LarderTLS
import LarderTime
import Synchronization

/// The TLS client of a transport and its WebSockets, made when it is first needed, because that may read many files.
final class LazyTLSClient: Sendable {
    private typealias Made = Result<TLSClient, TLSError>

    private struct State {
        var client: TLSClient?
        /// Those who wait for the thread that makes it.
        var waiting: [Pending<Made?>] = []
    }

    private let settings: TLSSettings
    private let state = Mutex(State())

    init(_ settings: TLSSettings) { self.settings = settings }

    var made: TLSClient? { state.withLock { $0.client } }

    /// The client. It is made once, on a thread of its own if files are read.
    ///
    /// - Returns: nil if the calling task was cancelled.
    func get() async throws(TLSError) -> TLSClient? {
        let pending = Pending<Made?>()
        let isFirst = state.withLock { state in
            if let client = state.client { return !pending.finish(.success(client)) }
            state.waiting.append(pending)
            return state.waiting.count == 1
        }
        if isFirst, settings.readFiles {
            let thread = Thread { self.make() }
            thread.name = "larder-roots"
            thread.start()
        } else if isFirst {
            make()
        }
        return try await pending.value(ifCancelled: nil)?.get()
    }

    /// After a failure the next request tries again.
    private func make() {
        let made = Made { () throws(TLSError) in try TLSClient(settings) }
        let waiting = state.withLock { state in
            if case .success(let client) = made { state.client = client }
            defer { state.waiting = [] }
            return state.waiting
        }
        for pending in waiting { pending.finish(made) }
    }
}

extension SocketCall.Outcome: SocketWriteOutcome {
    static func failed(_ error: TLSError) -> Self { .failed(error.description) }

    var acceptedCount: Int? { if case .count(let count) = self { count } else { nil } }
}
