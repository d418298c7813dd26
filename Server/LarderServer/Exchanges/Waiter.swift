package import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// A value in JSON that is waited for: a text, a number or a Boolean value. A text equals no number.
public struct StateValue: Sendable, Hashable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral
{
    package let json: JSONValue

    package init(_ json: JSONValue) { self.json = json }

    /// A text.
    public init(stringLiteral value: String) { json = .string(value) }

    public init(integerLiteral value: Int64) { json = .integer(value) }

    public init(booleanLiteral value: Bool) { json = .bool(value) }
}

/// A condition of a world that can be waited for.
public enum WaitCondition: Sendable, Hashable {
    /// This number of matching journal entries.
    case entries(JournalFilter, count: Int)
    /// This number of exchanges held by gates.
    case held(Int)
    /// No new journal entry for this long, in the world's time.
    case quiet(Duration)
    /// This number of commits since the world was made.
    case commits(Int)
    /// A value in a representation: its path, a JSON pointer, and what it must be.
    case state(path: String, person: String?, pointer: String, equals: StateValue)
}

/// Waits for a condition of a world. It ends once, when the condition holds, the limit is over or the world is destroyed.
///
/// Evaluated on a loop, never while a store is locked. Safe from any thread.
final class Waiter: Sendable {
    enum LimitClock: String, Sendable, CaseIterable {
        case real
        case world
    }

    private struct State {
        var completion: (@Sendable (Bool, Int) -> Void)?
        var observers: [@Sendable () -> Void] = []
        var isLookScheduled = false
        /// Whether a check is scheduled for the time at which the quiet period could be over.
        var awaitsQuiet = false
        /// The result of the last check.
        var seen = 0
        /// The read position in the journal. Only changed by checks, which are sequential on the loop.
        var position = Journal.Position()
    }

    private let plane: ControlPlane
    private let world: World
    private let condition: WaitCondition
    private let loop: EventLoop
    private let state: Mutex<State>

    init(
        _ condition: WaitCondition,
        _ plane: ControlPlane,
        _ world: World,
        _ loop: EventLoop,
        completion: @escaping @Sendable (Bool, Int) -> Void
    ) {
        self.condition = condition
        self.plane = plane
        self.world = world
        self.loop = loop
        state = Mutex(State(completion: completion))
    }

    func start(limit: Duration, by clock: LimitClock) {
        // Before the limit is set: a condition that already holds is detected, however short the limit.
        scheduleCheck()
        let control = world.control
        var observers = [
            control.journal.observers.add { [self] _ in scheduleCheck() },
            control.commitObservers.add { [self] _ in scheduleCheck() },
            control.gates.observers.add { [self] _ in scheduleCheck() }, control.whenEnded { [self] in end(false) },
        ]
        switch clock {
        case .real:
            let timer = loop.schedule(after: limit) { [self] in giveUp() }
            observers.append { [loop] in loop.cancel(timer) }
        case .world:
            let timer = world.clock.schedule(after: limit) { [self] in loop.execute { [self] in giveUp() } }
            observers.append { [world] in world.clock.cancel(timer) }
        }
        keep(observers)
        // Something may have happened before the observers were added.
        scheduleCheck()
    }

    /// Keeps what is to be called when the wait ends; calls it if it is over.
    private func keep(_ observers: [@Sendable () -> Void]) {
        let isOver = state.withLock { state in
            if state.completion != nil { state.observers += observers }
            return state.completion == nil
        }
        if isOver { for observer in observers { observer() } }
    }

    private func scheduleCheck() {
        let mustSchedule = state.withLock { state in
            defer { state.isLookScheduled = true }
            return !state.isLookScheduled && state.completion != nil
        }
        if mustSchedule { loop.execute { [self] in check() } }
    }

    private func check() {
        let isOver = state.withLock { state in
            state.isLookScheduled = false
            return state.completion == nil
        }
        guard !isOver else { return }
        let (holds, seen) = measure()
        state.withLock { $0.seen = seen }
        if holds { end(true) }
    }

    /// The limit is over; everything until now counts.
    private func giveUp() {
        check()
        end(false)
    }

    func end(_ holds: Bool) {
        let last = state.withLock { state in
            defer { (state.completion, state.observers) = (nil, []) }
            return state
        }
        for observer in last.observers { observer() }
        last.completion?(holds, last.seen)
    }

    private func measure() -> (holds: Bool, seen: Int) {
        switch condition {
        case .entries(let filter, let count):
            var (position, seen) = state.withLock { ($0.position, $0.seen) }
            let (entries, wasCleared) = world.control.journal.entries(after: &position)
            let matcher = JournalMatcher(filter, in: world)
            seen = (wasCleared ? 0 : seen) + entries.count { matcher.matches($0) }
            state.withLock { [position] in $0.position = position }
            return (seen >= count, seen)
        case .held(let count):
            let seen = world.control.gates.held.count
            return (seen >= count, seen)
        case .commits(let count): return (world.commitCount >= Int64(count), Int(world.commitCount))
        case .quiet(let duration):
            let age = world.clock.uptime - world.control.journal.lastActivity
            if age >= duration { return (true, 0) }
            // Checked again at the earliest possible time: an entry in between only makes that check too early, and it
            // schedules the next.
            let mustSchedule = state.withLock { state in
                defer { state.awaitsQuiet = true }
                return !state.awaitsQuiet && state.completion != nil
            }
            if mustSchedule {
                let timer = world.clock.schedule(after: duration - age) { [weak self] in
                    self?.state.withLock { $0.awaitsQuiet = false }
                    self?.scheduleCheck()
                }
                keep([{ [world] in world.clock.cancel(timer) }])
            }
            return (false, 0)
        case .state(let path, let person, let pointer, let wanted):
            let value: JSONValue?
            do {
                value = try JSONParser.parse(plane.look(at: path, as: person, in: world).bytes).value(at: pointer)
            } catch {
                // A reply that is not JSON has no such member: the wait goes on.
                value = nil
            }
            return (value == wanted.json, value == nil ? 0 : 1)
        }
    }
}
