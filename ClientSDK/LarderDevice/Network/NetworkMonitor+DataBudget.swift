package import LarderEvents
public import LarderTime
import Synchronization

extension NetworkMonitor {
    /// The bytes that may be received in a calendar month (UTC). When they are spent, a `NetworkMonitor` with this budget treats the network as
    /// metered: nothing is prefetched, and less is refreshed. Requests of a person are not stopped. Safe from any thread.
    ///
    /// A client stores with its account what was received.
    ///
    /// ```swift
    /// var configuration = APIClient.Configuration()
    /// configuration.services.dataBudget = NetworkMonitor.DataBudget(bytesPerMonth: 500 << 20)
    /// ```
    public final class DataBudget: Sendable {
        /// What was received in a month.
        package struct Use: Codable, Sendable, Hashable {
            /// The month: `2026-07`.
            package var month: String
            /// The bytes of content, as they were sent, without heads.
            package var bytes: Int

            package init(month: String = "", bytes: Int = 0) {
                self.month = month
                self.bytes = bytes
            }
        }

        /// The limit.
        public let bytesPerMonth: Int
        private let clock: any WallClock
        private let state: Mutex<Use>
        private let changes = EventHub<Use>()

        /// - Parameters:
        ///   - bytesPerMonth: the limit.
        ///   - use: what was received before, from the process that ran last.
        ///   - clock: tells the month.
        package init(bytesPerMonth: Int, use: Use, clock: any WallClock = SystemWallClock()) {
            self.bytesPerMonth = bytesPerMonth
            self.clock = clock
            state = Mutex(use)
        }

        /// - Parameters:
        ///   - bytesPerMonth: the limit.
        ///   - clock: tells the month.
        public convenience init(bytesPerMonth: Int, clock: any WallClock = SystemWallClock()) {
            self.init(bytesPerMonth: bytesPerMonth, use: Use(), clock: clock)
        }

        /// What was received in the present month.
        package var use: Use { inPresentMonth { $0 } }

        /// The bytes of content that were received in the present month, as they were sent, without heads.
        public var bytesReceived: Int { use.bytes }

        /// The use after each exchange. A slow reader gets only the newest.
        package var uses: EventSequence<Use> { changes.subscribe(limit: 1) }

        /// Whether nothing is left of the present month.
        public var isSpent: Bool { use.bytes >= bytesPerMonth }

        /// Takes over what was received before. That of another month does not count, nor does less than is known.
        package func restore(_ earlier: Use) {
            inPresentMonth { use in
                if earlier.month == use.month { use.bytes = max(use.bytes, earlier.bytes) }
            }
        }

        /// Counts received bytes. Returns whether they were the last of the month.
        func spend(_ bytes: Int) -> Bool {
            inPresentMonth { use in
                let before = use.bytes
                let (sum, overflows) = before.addingReportingOverflow(max(0, bytes))
                use.bytes = overflows ? .max : sum
                changes.post(use)
                return before < bytesPerMonth && use.bytes >= bytesPerMonth
            }
        }

        private func inPresentMonth<Result: Sendable>(_ body: (inout Use) -> Result) -> Result {
            let month = String(clock.now.rfc3339().prefix(7))
            return state.withLock { use in
                if use.month != month { use = Use(month: month) }
                return body(&use)
            }
        }
    }
}
