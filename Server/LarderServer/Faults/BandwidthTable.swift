import LarderTime
import Synchronization

/// The bandwidth used by each device, shared by all of its connections. Safe from any thread.
final class BandwidthTable: Sendable {
    private struct Key: Hashable {
        let device: String
        let isUp: Bool
    }

    /// When the last transfer on a line begins, and when the line will have transferred everything that was queued on it.
    private struct Queue {
        var lastStart: MonotonicTime
        var end: MonotonicTime
    }

    private let queues = Mutex<[Key: Queue]>([:])
    private static let countMaximum = 10_000

    /// Queues bytes; returns how long from now their transfer takes.
    func carry(_ bytes: Int, device: String, isUp: Bool, bytesPerSecond: Int, now: MonotonicTime) -> Duration {
        queues.withLock { queues in
            if queues.count >= Self.countMaximum { queues = queues.filter { $0.value.end > now } }
            // Beyond the bound devices share a line, as they share a fault's count.
            let own = Key(device: device, isUp: isUp)
            let hasRoom = queues[own] != nil || queues.count < Self.countMaximum
            let key = hasRoom ? own : Key(device: "others", isUp: isUp)
            let start = max(now, queues[key]?.end ?? now)
            let time = Double(bytes) / Double(bytesPerSecond) * 1e9
            let end = start + .nanoseconds(Int64(min(time, 9e18)))
            queues[key] = Queue(lastStart: start, end: end)
            return end - now
        }
    }

    /// Ends the last transfer on a line, because its client has gone. No effect if another one is queued behind it.
    ///
    /// - Parameter end: when it would have ended.
    func giveUp(device: String, isUp: Bool, until end: MonotonicTime, now: MonotonicTime) {
        queues.withLock { queues in
            let key = Key(device: device, isUp: isUp)
            guard let queue = queues[key], queue.end == end else { return }
            queues[key]?.end = max(now, queue.lastStart)
        }
    }

    func removeAll() { queues.withLock { $0 = [:] } }
}
