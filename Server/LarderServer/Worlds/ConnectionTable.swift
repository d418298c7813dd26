import LarderTime
import Synchronization

/// The connections of a world, numbered from 1 in the order of their first request to it. Safe from any thread.
final class ConnectionTable: Sendable {
    /// The number of the connection in the world, and when its first exchange there began.
    typealias Entry = (index: Int, since: MonotonicTime)

    private struct State {
        var entries: [UInt64: Entry] = [:]
        var count = 0
    }

    private let state = Mutex(State())
    private static let countMaximum = 16_384

    func entry(of connection: UInt64, now: @autoclosure () -> MonotonicTime) -> Entry {
        state.withLock { state in
            if let entry = state.entries[connection] { return entry }
            if state.entries.count >= Self.countMaximum {
                // The server's numbers ascend: the older half is most likely closed.
                let middle = state.entries.keys.sorted()[state.entries.count / 2]
                state.entries = state.entries.filter { $0.key >= middle }
            }
            state.count += 1
            let entry = (state.count, now())
            state.entries[connection] = entry
            return entry
        }
    }
}
