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
        guard live.readerCount > 0 else {
            return heartbeat.withLock { timer in
                // A reader that joined in between found the timer running; a later one starts it again.
                guard live.readerCount == 0, let last = timer.take() else { return }
                clock.cancel(last)
            }
        }
        if !clock.followsSystem { live.beat() }
    }
}
