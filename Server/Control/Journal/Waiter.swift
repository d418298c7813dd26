import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// Something that can be waited for in a world.
public enum WaitCondition: Sendable, Hashable {
    /// So many entries of the journal that match.
    case entries(JournalFilter, count: Int)
    /// So many exchanges held by gates.
    case held(Int)
    /// Nothing written to the journal for so long, in the world's time.
    case quiet(Duration)
    /// So many commits since the world was made.
    case commits(Int)
    /// A value in a representation: a path, a JSON pointer into what is there, and what is to be found.
    case state(path: String, person: String?, pointer: String, equals: String)
}

/// Waits until a condition of a world holds. Whatever comes first, that or the limit, ends it once.
///
/// Looked at on a loop, never while a store is held. Safe from any thread.
final class Waiter: Sendable {
    /// By which clock the limit is measured.
    enum LimitClock: String, Sendable, CaseIterable {
        case real
        case world
    }

    private struct State {
        var completion: (@Sendable (Bool, Int) -> Void)?
        var observers: [@Sendable () -> Void] = []
        var isLookScheduled = false
        /// Whether a look is due when it could have been quiet for long enough.
        var awaitsQuiet = false
        /// What the last look has seen.
        var seen = 0
        /// How far the journal was read. Changed by looks alone, which follow one another on the loop.
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
        // Before the limit is set: a condition that holds is seen, however short the limit.
        lookSoon()
        let control = world.control
        let journal = control.journal.observe { [self] _ in lookSoon() }
        let commits = control.observeCommits { [self] _ in lookSoon() }
        let gates = control.gates.observe { [self] in lookSoon() }
        var observers: [@Sendable () -> Void] = [
            { control.journal.stopObserving(journal) }, { control.stopObservingCommits(commits) },
            { control.gates.stopObserving(gates) },
        ]
        switch clock {
        case .real:
            let timer = loop.schedule(after: limit) { [self] in giveUp() }
            observers.append { [loop] in loop.cancel(timer) }
        case .world:
            let timer = world.clock.schedule(after: limit) { [self] in loop.execute { [self] in giveUp() } }
            observers.append { [world] in world.clock.cancel(timer) }
        }
        let isOver = state.withLock { state in
            state.observers += observers
            return state.completion == nil
        }
        if isOver { removeObservers() }
        // Something may have happened before it was observed.
        lookSoon()
    }

    private func lookSoon() {
        let mustSchedule = state.withLock { state in
            defer { state.isLookScheduled = true }
            return !state.isLookScheduled && state.completion != nil
        }
        if mustSchedule { loop.execute { [self] in look() } }
    }

    private func look() {
        let isOver = state.withLock { state in
            state.isLookScheduled = false
            return state.completion == nil
        }
        guard !isOver else { return }
        let (holds, seen) = measure()
        state.withLock { $0.seen = seen }
        if holds { end(true) }
    }

    /// The limit is over: what has happened until now counts.
    private func giveUp() {
        look()
        end(false)
    }

    /// Gives up, or is done.
    func end(_ holds: Bool) {
        let (completion, seen) = state.withLock { state in
            defer { state.completion = nil }
            return (state.completion, state.seen)
        }
        guard let completion else { return }
        removeObservers()
        completion(holds, seen)
    }

    private func removeObservers() {
        let observers = state.withLock { state in
            defer { state.observers = [] }
            return state.observers
        }
        for observer in observers { observer() }
    }

    private func measure() -> (holds: Bool, seen: Int) {
        switch condition {
        case .entries(let filter, let count):
            var (position, seen) = state.withLock { ($0.position, $0.seen) }
            let (entries, wasCleared) = world.control.journal.entries(after: &position)
            let matcher = JournalMatcher(filter) { [self] in plane.handle(of: $0, in: world) }
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
            // Looked at again when it could be: an entry in between only makes that look too early, and it leads to the next.
            let mustSchedule = state.withLock { state in
                defer { state.awaitsQuiet = true }
                return !state.awaitsQuiet && state.completion != nil
            }
            if mustSchedule {
                _ = world.clock.schedule(after: duration - age) { [weak self] in
                    self?.state.withLock { $0.awaitsQuiet = false }
                    self?.lookSoon()
                }
            }
            return (false, 0)
        case .state(let path, let person, let pointer, let wanted):
            let result = plane.perform(PhantomAct("GET", path, as: person), in: world)
            let value = (try? JSONParser.parse(result.body))?.value(at: pointer)
            let text = value.map { $0.string ?? String(decoding: $0.encoded, as: UTF8.self) }
            return (text == wanted, text == nil ? 0 : 1)
        }
    }
}

/// Waiting, over HTTP: the reply comes when the condition holds or the limit is over.
enum WaitEndpoints {
    static func wait(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply? {
        guard method == .post else { throw ControlEndpoints.wrongMethod("POST") }
        var (reader, errors) = try call.settings()
        let condition = read(&reader)
        let limit = reader.seconds("timeoutSeconds", maximum: 600) ?? .seconds(10)
        let clock = reader.choice("clock", Waiter.LimitClock.self) ?? .real
        reader.finish()
        try errors.check()
        guard let condition else { return nil }
        let exchange = call.exchange
        let waiter = Waiter(condition, call.plane, call.world, exchange.loop) { holds, seen in
            if holds {
                exchange.complete(
                    ControlEndpoints.json(.members(["holds": .bool(true), "seen": .integer(Int64(seen))]))
                )
            } else {
                var problem = ProblemType.waitEnded("It did not happen within \(limit).")
                problem.extensions["seen"] = .integer(Int64(seen))
                exchange.complete(problem.reply)
            }
        }
        waiter.start(limit: limit, by: clock)
        return nil
    }

    private static func read(_ reader: inout SettingsReader) -> WaitCondition? {
        if var child = reader.child("entries") {
            defer { child.finish() }
            let count = child.integer("count", in: 1...1_000_000) ?? 1
            return .entries(JournalFilter.read(&child), count: count)
        }
        if let count = reader.integer("held", in: 1...1_000_000) { return .held(count) }
        if let duration = reader.seconds("quietSeconds", maximum: 86_400) { return .quiet(duration) }
        if let count = reader.integer("commits", in: 1...Int(Int32.max)) { return .commits(count) }
        if var child = reader.child("state") {
            defer { child.finish() }
            let (path, pointer) = (child.string("path"), child.string("pointer", length: 0...1_024))
            let person = child.string("as", length: 1...64)
            let wanted = child.value("equals").map { $0.string ?? String(decoding: $0.encoded, as: UTF8.self) }
            guard let path, path.hasPrefix("/v1/"), let wanted else {
                child.fail("path", "must be a path of the API, and `equals` must be given")
                return nil
            }
            return .state(path: path, person: person, pointer: pointer ?? "", equals: wanted)
        }
        reader.fail("entries", "or `held`, `quietSeconds`, `commits` or `state` must be given")
        return nil
    }
}
