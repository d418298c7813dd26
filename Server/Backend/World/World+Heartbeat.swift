import LarderEngine
import Synchronization

/// Signs of life on live channels.
extension World {
    /// Has live channels give signs of life by the world's clock, while it is not the system's: that one the engine knows. The
    /// clock may be taken from the system while they are open, so the beat goes on either way.
    func beatHearts() {
        heartbeat.withLock { timer in
            guard timer == nil else { return }
            timer = clock.schedule(every: settings.heartbeat) { [weak self] in self?.beat() }
        }
    }

    private func beat() {
        guard live.readerCount > 0 else {
            return heartbeat.withLock { timer in
                // A reader who came in between was told that the heart beats; one who comes later starts it again.
                guard live.readerCount == 0, let last = timer.take() else { return }
                clock.cancel(last)
            }
        }
        if !clock.followsSystem { live.beat() }
    }
}
