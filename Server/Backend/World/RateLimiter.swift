import LarderTime
import Synchronization

/// A fixed quota in every window of time for each caller, reported as draft-ietf-httpapi-ratelimit-headers has it.
///
/// Windows begin with a caller's first request. Safe from any thread; callers who have been away for a window are forgotten,
/// and of too many who have not, those whose windows began first.
final class RateLimiter: Sendable {
    /// What a caller has left.
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
            if windows.count >= Self.callersMaximum, windows[caller] == nil { forgetSome(&windows, now) }
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

    /// Forgets whose window is over; where that leaves too many, the half whose windows began first: who sends from ever new
    /// addresses buys no memory, and a look through all of them pays for many new ones.
    private func forgetSome(_ windows: inout [String: Window], _ now: WallTime) {
        windows = windows.filter { now - $0.value.began < window }
        guard windows.count > Self.callersMaximum / 2 else { return }
        let kept = windows.sorted { ($0.value.began, $0.key) < ($1.value.began, $1.key) }
            .suffix(Self.callersMaximum / 2)
        windows = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.value) })
    }

    /// How many callers are remembered.
    var callerCount: Int { windows.withLock { $0.count } }

    var windowSeconds: Int { Int(window.components.seconds) }
}
