import LarderTime
import Synchronization

/// A fixed quota per caller and time window, reported as draft-ietf-httpapi-ratelimit-headers specifies.
///
/// A window begins with a caller's first request. Safe from any thread. If there are too many callers, those whose window is over are
/// removed; if there are still too many, all begin anew.
final class RateLimiter: Sendable {
    /// The remaining quota of a caller.
    struct Verdict: Sendable, Hashable {
        let isAllowed: Bool
        let remaining: Int
        /// Whole seconds until the window ends, rounded up.
        let secondsToReset: Int
    }

    private struct Window {
        var began: WallTime
        var used: Int
    }

    let quota: Int
    let window: Duration
    private let windows = Mutex<[String: Window]>([:])
    static let callersMaximum = 10_000

    init(quota: Int, window: Duration) {
        self.quota = quota
        self.window = window
    }

    func take(_ caller: String, now: WallTime) -> Verdict {
        windows.withLock { windows in
            // A flood of new addresses takes bounded memory.
            if windows.count >= Self.callersMaximum, windows[caller] == nil {
                windows = windows.filter { now - $0.value.began < window }
                if windows.count > Self.callersMaximum / 2 { windows = [:] }
            }
            var current = windows[caller] ?? Window(began: now, used: 0)
            let elapsed = now - current.began
            if elapsed >= window || elapsed < .zero { current = Window(began: now, used: 0) }
            let isAllowed = current.used < quota
            if isAllowed { current.used += 1 }
            windows[caller] = current
            let left = window - (now - current.began)
            return Verdict(
                isAllowed: isAllowed,
                remaining: quota - current.used,
                secondsToReset: Int((left + .nanoseconds(999_999_999)).components.seconds)
            )
        }
    }

    var callerCount: Int { windows.withLock { $0.count } }

    var windowSeconds: Int { Int(window.components.seconds) }
}
