import Synchronization

/// Signs of life on live channels.
extension World {
    /// Has live channels give signs of life by the world's clock, while it is not the system's: that one the engine knows. The
    /// clock may be taken from the system while they are open, so the beat goes on either way.
    func beatHearts() {
        guard !isBeating.exchange(true, ordering: .relaxed) else { return }
        beat()
    }

    private func beat() {
        _ = clock.schedule(after: settings.heartbeat) { [weak self] in
            guard let self else { return }
            guard live.readerCount > 0 else {
                isBeating.store(false, ordering: .relaxed)
                // Who came in between was told that the heart beats.
                if live.readerCount > 0 { beatHearts() }
                return
            }
            if !clock.followsSystem { live.beat() }
            beat()
        }
    }
}
