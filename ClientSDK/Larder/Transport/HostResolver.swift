import Foundation
import Synchronization

/// Finds the addresses of hosts, on threads of its own: the system's resolver blocks and cannot be interrupted.
///
/// Lookups of one host at a time are one, and at most four are under way; further ones wait. Nothing is remembered, as the
/// system does not say for how long an address holds. Safe from any thread.
final class HostResolver: Sendable {
    typealias Found = Result<[SocketCall.Address], TransportError>

    static let shared = HostResolver { host, port in
        SocketCall.resolve(host, port: port).mapError { TransportError(.unreachable, $0.description) }
    }

    private struct State {
        var waiting: [SocketTarget.Origin: [@Sendable (Found) -> Void]] = [:]
        var queue: [SocketTarget.Origin] = []
        var threads = 0
    }

    private static let threadsMaximum = 4
    private let look: @Sendable (String, Int) -> Found
    private let state = Mutex(State())

    /// - Parameter look: finds addresses, and may block for as long as it likes.
    init(_ look: @escaping @Sendable (String, Int) -> Found) { self.look = look }

    /// How many threads look something up: for tests.
    var threadCount: Int { state.withLock { $0.threads } }

    /// Gives the addresses to `done`: at once where the host is an address, and on a thread of its own otherwise.
    func addresses(of origin: SocketTarget.Origin, _ done: @escaping @Sendable (Found) -> Void) {
        if case .success(let numeric) = SocketCall.resolve(origin.host, port: origin.port, isNumeric: true) {
            return done(.success(numeric))
        }
        let starts = state.withLock { state in
            if state.waiting[origin] != nil {
                state.waiting[origin]?.append(done)
                return false
            }
            state.waiting[origin] = [done]
            state.queue.append(origin)
            guard state.threads < Self.threadsMaximum else { return false }
            state.threads += 1
            return true
        }
        guard starts else { return }
        let thread = Thread { self.work() }
        thread.name = "larder-resolver"
        thread.start()
    }

    private func work() {
        while let origin = next() {
            let found = look(origin.host, origin.port)
            let waiting = state.withLock { $0.waiting.removeValue(forKey: origin) } ?? []
            for done in waiting { done(found) }
        }
    }

    private func next() -> SocketTarget.Origin? {
        state.withLock { state in
            guard !state.queue.isEmpty else {
                state.threads -= 1
                return nil
            }
            return state.queue.removeFirst()
        }
    }
}
