public import LarderTime
import Synchronization

/// Work that can wait until the user pauses: decoding while nobody scrolls. Safe from any thread.
///
/// It is told when the user interacts, and asked to drain at idle moments by whoever knows them: a game's loop, a test, an
/// `IdleDriver`, a run loop. At each moment it does so much and no more; what nobody wants any more is dropped and does not
/// count; what is older than `ageMaximum` is done at any moment, idle or not, so that nothing starves.
public final class IdleScheduler: Sendable {
    private struct Item {
        let since: MonotonicTime
        let isWanted: @Sendable () -> Bool
        let run: @Sendable () -> Void
    }

    private struct State {
        var items: [Item] = []
        var first = 0
        var interacted: MonotonicTime?
        var onSubmit: (@Sendable () -> Void)?

        var count: Int { items.count - first }

        mutating func takeFirst(_ holds: (Item) -> Bool) -> Item? {
            guard first < items.count, holds(items[first]) else { return nil }
            let item = items[first]
            first += 1
            if first > 64, first > items.count / 2 {
                items.removeFirst(first)
                first = 0
            }
            return item
        }
    }

    /// How long after an interaction it is idle.
    public let quiet: Duration
    /// How many pieces of work are done at an idle moment.
    public let countMaximum: Int
    /// How old work becomes before it is done at any moment.
    public let ageMaximum: Duration
    private let clock: any MonotonicClock
    private let state = Mutex(State())

    /// A scheduler that does nothing until it is drained.
    public init(
        quiet: Duration = .milliseconds(100),
        countMaximum: Int = 2,
        ageMaximum: Duration = .seconds(1),
        clock: any MonotonicClock = SystemMonotonicClock()
    ) {
        self.quiet = max(.zero, quiet)
        self.countMaximum = max(1, countMaximum)
        self.ageMaximum = max(.zero, ageMaximum)
        self.clock = clock
    }

    /// Tells that the user touches, scrolls, types.
    public func interacted() {
        let now = clock.uptime
        state.withLock { $0.interacted = now }
    }

    /// Hands over work.
    ///
    /// - Parameters:
    ///   - isWanted: asked before it is done, outside of locks; what is not wanted is dropped.
    ///   - run: does it, on the thread that drains. It should be short or hand the work on.
    public func submit(isWanted: @escaping @Sendable () -> Bool = { true }, run: @escaping @Sendable () -> Void) {
        let now = clock.uptime
        let onSubmit = state.withLock { state in
            state.items.append(Item(since: now, isWanted: isWanted, run: run))
            return state.onSubmit
        }
        onSubmit?()
    }

    /// Called at an idle moment: does some of what waits, oldest first. Says how much it did.
    @discardableResult
    public func drain() -> Int {
        let now = clock.uptime
        var done = 0
        while done < countMaximum {
            let item = state.withLock { state in
                let isIdle = state.interacted.map { now - $0 >= quiet } ?? true
                return state.takeFirst { isIdle || now - $0.since >= ageMaximum }
            }
            guard let item else { break }
            guard item.isWanted() else { continue }
            item.run()
            done += 1
        }
        return done
    }

    /// How much waits, with what nobody wants any more and is not noticed yet.
    public var count: Int { state.withLock { $0.count } }

    /// How long until draining will do something: nothing where it would now, nil where nothing waits.
    public var untilNext: Duration? {
        let now = clock.uptime
        return state.withLock { state in
            guard state.first < state.items.count else { return nil }
            guard let interacted = state.interacted else { return .zero }
            let untilIdle = quiet - (now - interacted)
            let untilOld = ageMaximum - (now - state.items[state.first].since)
            return max(.zero, min(untilIdle, untilOld))
        }
    }

    /// Has a driver told of new work, after it was taken. There is one driver; nil takes it off.
    func setOnSubmit(_ body: (@Sendable () -> Void)?) { state.withLock { $0.onSubmit = body } }
}
