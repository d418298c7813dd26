public import LarderTime
import Synchronization

extension NetworkMonitor {
    /// The bytes that may be received in a calendar month (UTC). When they are spent, a `NetworkMonitor` with this budget treats the network as
    /// metered: nothing is prefetched, and less is refreshed. Requests of a person are not stopped. Safe from any thread.
    ///
    /// The app stores `use` and passes it to the next budget.
    ///
    /// ```swift
    /// var configuration = NetworkMonitor.Configuration()
    /// configuration.dataBudget = NetworkMonitor.DataBudget(bytesPerMonth: 500 << 20)
    /// ```
    public final class DataBudget: Sendable {
        /// What was received in a month.
        public struct Use: Codable, Sendable, Hashable {
            /// The month: `2026-07`.
            public var month: String
            /// The bytes of content, as they were sent, without heads.
            public var bytes: Int

            /// Creates a use.
            public init(month: String = "", bytes: Int = 0) {
                self.month = month
                self.bytes = bytes
            }
        }

        /// The limit.
        public let bytesPerMonth: Int
        private let clock: any WallClock
        private let state: Mutex<Use>

        /// - Parameters:
        ///   - bytesPerMonth: the limit.
        ///   - use: what was received before, from the process that ran last.
        ///   - clock: tells the month.
        public init(bytesPerMonth: Int, use: Use = Use(), clock: any WallClock = SystemWallClock()) {
            self.bytesPerMonth = bytesPerMonth
            self.clock = clock
            state = Mutex(use)
        }

        /// What was received in the present month.
        public var use: Use {
            let month = String(clock.now.rfc3339().prefix(7))
            return state.withLock { state in
                if state.month != month { state = Use(month: month) }
                return state
            }
        }

        /// Whether nothing is left of the present month.
        public var isSpent: Bool { use.bytes >= bytesPerMonth }

        /// Counts received bytes. Returns whether they were the last of the month.
        func spend(_ bytes: Int) -> Bool {
            let before = use.bytes
            let after = state.withLock { state in
                let (sum, overflows) = state.bytes.addingReportingOverflow(max(0, bytes))
                state.bytes = overflows ? .max : sum
                return state.bytes
            }
            return before < bytesPerMonth && after >= bytesPerMonth
        }
    }
}
