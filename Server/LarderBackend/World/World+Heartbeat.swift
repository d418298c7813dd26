import LarderEngine
import Synchronization

/// Heartbeats on live channels.
extension World {
    /// Starts heartbeats by the world's clock while it does not follow the system's, for which the engine sends them. The timer
    /// runs in either case because the clock may be changed while channels are open.
    func startHeartbeat() {
        heartbeat.withLock { timer in
            guard timer == nil else { return }
            timer = clock.schedule(every: settings.heartbeat) { [weak self] in self?.beat() }
        }
    }

    private func beat() {
        if !clock.followsSystem { live.tell(.heartbeat) }
        stopUnusedHeartbeat()
    }

    /// Removes a reader of live events. The heartbeats end with the last one.
    func removeReader(_ reader: UInt64) {
        live.remove(reader)
        stopUnusedHeartbeat()
    }

    /// A reader that joins meanwhile is counted here, or starts the timer again afterwards.
    private func stopUnusedHeartbeat() {
        heartbeat.withLock { timer in
            guard live.readerCount == 0, let last = timer.take() else { return }
            clock.cancel(last)
        }
    }
}
