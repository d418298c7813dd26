import LarderHTTP
import Synchronization

/// Limits the memory that the bodies of all exchanges of a proxy have together. Safe from any thread.
final class BodyMemory: Sendable {
    /// A part of the memory. It is free again when this is released.
    final class Lease: Sendable {
        private let memory: BodyMemory
        private let count: Mutex<Int>

        fileprivate init(_ memory: BodyMemory, _ count: Int) {
            self.memory = memory
            self.count = Mutex(count)
        }

        deinit { memory.give(count.withLock { $0 }) }

        /// Takes more of the memory.
        ///
        /// - Throws: `service-unavailable` if there is not so much.
        func grow(by more: Int) throws(Problem) {
            try memory.reserve(more)
            count.withLock { $0 += more }
        }
    }

    private let bytesMaximum: Int
    private let used = Mutex(0)

    init(bytesMaximum: Int) { self.bytesMaximum = bytesMaximum }

    /// A part of the memory that has no bytes yet.
    var emptyLease: Lease { Lease(self, 0) }

    /// Takes a part of the memory.
    ///
    /// - Throws: `service-unavailable` if there is not so much.
    func take(_ count: Int) throws(Problem) -> Lease {
        try reserve(count)
        return Lease(self, count)
    }

    private func reserve(_ count: Int) throws(Problem) {
        let isFree = used.withLock { used in
            guard count <= bytesMaximum - used else { return false }
            used += count
            return true
        }
        guard isFree else {
            throw ProblemType.unavailable(
                "The bodies that the proxy has in memory have \(bytesMaximum) bytes, the maximum.",
                fields: [.retryAfter: "1"]
            )
        }
    }

    private func give(_ count: Int) { used.withLock { $0 -= count } }
}
