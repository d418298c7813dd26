import LarderTime
import Synchronization

/// The bandwidth used by each device, shared by all of its connections. Safe from any thread.
final class BandwidthTable: Sendable {
    private struct Key: Hashable {
        let device: String
        let isUp: Bool
    }

    /// When each line will have transferred everything that was queued on it.
    private let free = Mutex<[Key: MonotonicTime]>([:])
    private static let countMaximum = 10_000

    /// Queues bytes; returns how long from now their transfer takes.
    func carry(_ bytes: Int, device: String, isUp: Bool, bytesPerSecond: Int, now: MonotonicTime) -> Duration {
        free.withLock { free in
            if free.count >= Self.countMaximum { free = free.filter { $0.value > now } }
            // Beyond the bound devices share a line, as they share a fault's count.
            let own = Key(device: device, isUp: isUp)
            let hasRoom = free[own] != nil || free.count < Self.countMaximum
            let key = hasRoom ? own : Key(device: "others", isUp: isUp)
            let start = max(now, free[key] ?? now)
            let time = Double(bytes) / Double(bytesPerSecond) * 1e9
            let end = start + .nanoseconds(Int64(min(time, 9e18)))
            free[key] = end
            return end - now
        }
    }
}
