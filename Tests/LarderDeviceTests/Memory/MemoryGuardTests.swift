import Larder
import LarderDevice
import LarderEvents
import LarderMemory
import LarderTelemetry
import LarderTime
import Synchronization
import TestSupport
import Testing

@Suite("Memory guard", .oneMinute)
struct MemoryGuardTests {
    private let clock = ManualClock()
    private let source = MemoryGuard.ManualSource()
    private let telemetry: Telemetry

    init() { telemetry = Telemetry(wall: clock, monotonic: clock) }

    private func makeGuard(_ policy: MemoryPolicy = .standard) -> MemoryGuard {
        MemoryGuard(source: source, policy: policy, clock: clock, onEvent: { [telemetry] in telemetry.record($0) })
    }

    /// Loads that fill a cache when the test finishes them.
    private final class Loader: Sendable {
        struct State {
            var pending = 40
            var isStopped = false
            var calls: [String] = []
        }

        let state = Mutex(State())
        let cache: MemoryTier<Int, [UInt8]>
        let heedsStop: Bool

        init(_ cache: MemoryTier<Int, [UInt8]>, heedsStop: Bool) {
            self.cache = cache
            self.heedsStop = heedsStop
        }

        var reaction: MemoryReaction {
            MemoryReaction("loader", stop: { self.stopWork(for: $0) }, release: { self.releaseMemory(for: $0) })
        }

        func stopWork(for limits: MemoryLimits) -> Int {
            state.withLock { state in
                state.calls.append("stop")
                guard heedsStop, limits.cancelsLoads else { return 0 }
                defer { state.pending = 0 }
                return state.pending
            }
        }

        func releaseMemory(for limits: MemoryLimits) -> Int {
            state.withLock { $0.calls.append("release") }
            return 0
        }

        /// Finishes loads in flight.
        func finish(_ count: Int) {
            for _ in 0..<count {
                let number = state.withLock { state -> Int? in
                    guard state.pending > 0 else { return nil }
                    state.pending -= 1
                    return state.pending
                }
                if let number { cache.store([UInt8](repeating: 0, count: 1_000), for: number, cost: 1_000) }
            }
        }
    }

    @Test func `work is stopped everywhere before anything is released`() {
        let memory = makeGuard()
        let log = Mutex<[String]>([])
        let registrations = ["a", "b", "c"].map { name in
            memory.register(
                MemoryReaction(
                    name,
                    stop: { _ in
                        log.withLock { $0.append("stop \(name)") }; return 2
                    },
                    release: { _ in
                        log.withLock { $0.append("release \(name)") }; return 10
                    }
                )
            )
        }
        source.signal(.warning, cause: "test")
        #expect(log.withLock { $0 } == ["stop a", "stop b", "stop c", "release a", "release b", "release c"])
        #expect(memory.current.cause == "test")
        #expect(telemetry.totals.memoryFreed == 30 && telemetry.totals.loadsCancelled == 6)
        #expect(telemetry.totals.memoryLevel == .warning)
        withExtendedLifetime(registrations) {}
    }

    @Test func `usage is measured when the level rises, before anything is stopped, and not again while it lasts`() {
        let memory = makeGuard()
        let log = Mutex<[String]>([])
        let registrations = [1, 2].map { number in
            memory.register(
                MemoryReaction(
                    "\(number)",
                    measure: {
                        log.withLock { $0.append("measure") }
                        return MemoryReaction.Usage(cost: 100 * number, requests: number, loads: 10 * number)
                    },
                    stop: { _ in
                        log.withLock { $0.append("stop") }; return 1
                    }
                )
            )
        }
        source.signal(.warning, cause: "test")
        source.signal(.warning, cause: "test")
        #expect(log.withLock { $0 } == ["measure", "measure", "stop", "stop", "stop", "stop"])
        let warnings = telemetry.totals.memoryWarnings
        #expect(warnings.count == 1 && warnings.last.cost == 300 && warnings.last.requests == 3)
        #expect(warnings.last.loads == 30)
        source.signal(.critical, cause: "test")
        #expect(telemetry.totals.memoryWarnings.count == 2)
        withExtendedLifetime(registrations) {}
    }

    /// Holds a tier at the allowed share of its cost.
    private func shrinking<Value>(_ tier: MemoryTier<Int, Value>, _ full: Int) -> MemoryReaction {
        MemoryReaction(
            "tier",
            release: { allowed in
                tier.trim(cost: allowed.limit(full))
                tier.setLimits(.init(cost: allowed.limit(full)))
                return 0
            }
        )
    }

    @Test func `memory does not bounce back after a warning, as it does where only caches are cleared`() {
        func run(isGuarded: Bool) -> [Int] {
            let source = MemoryGuard.ManualSource()
            let limits = MemoryTier<Int, [UInt8]>.Limits(cost: 100_000)
            let cache = MemoryTier<Int, [UInt8]>(limits: limits)
            for number in 100..<160 { cache.store([UInt8](repeating: 0, count: 1_000), for: number, cost: 1_000) }
            let loader = Loader(cache, heedsStop: true)
            let memory = MemoryGuard(source: source, clock: clock)
            var registrations: [EventRegistration] = []
            if isGuarded {
                registrations = [
                    memory.register(shrinking(cache, 100_000)), memory.register(loader.reaction),
                ]
            }
            var costs = [cache.cost]
            source.signal(.critical)
            // The naive reaction to a warning: clear the caches and let loads continue.
            if !isGuarded { cache.removeAll() }
            costs.append(cache.cost)
            for _ in 0..<4 {
                loader.finish(10)
                costs.append(cache.cost)
            }
            withExtendedLifetime(registrations) {}
            return costs
        }
        #expect(run(isGuarded: false) == [60_000, 0, 10_000, 20_000, 30_000, 40_000])
        #expect(run(isGuarded: true) == [60_000, 0, 0, 0, 0, 0])
    }

    @Test func `a tier shrinks, is held there, and grows back step by step`() {
        let limits = MemoryTier<Int, Int>.Limits(cost: 1_000)
        let reasons = Mutex<[MemoryTier<Int, Int>.Reason: Int]>([:])
        let tier = MemoryTier<Int, Int>(limits: limits) { departure in
            reasons.withLock { $0[departure.reason, default: 0] += 1 }
        }
        func fill() { for number in 0..<200 { tier.store(number, for: number, cost: 10) } }
        let memory = makeGuard()
        let registration = memory.register(shrinking(tier, 1_000))
        var costs: [Int] = []
        func note() {
            memory.tick()
            fill()
            costs.append(tier.cost)
        }
        note()
        source.signal(.warning)
        #expect(reasons.withLock { $0[.pressure] } == 50)
        note()
        source.signal(.normal)
        for wait in [5, 5, 10, 20] {
            clock.advance(by: .seconds(wait))
            note()
        }
        #expect(costs == [1_000, 500, 250, 500, 750, 1_000])
        #expect(memory.limits == .normal && memory.current.reported == .normal)
        withExtendedLifetime(registration) {}
    }

    @Test func `a reaction registered under pressure is called at once, and a released one not any more`() {
        let memory = makeGuard()
        source.signal(.critical)
        let shares = Mutex<[Double]>([])
        do {
            let registration = memory.register(
                MemoryReaction(
                    "late",
                    release: { limits in
                        shares.withLock { $0.append(limits.cacheShare) }; return 0
                    }
                )
            )
            #expect(shares.withLock { $0 } == [0])
            source.signal(.warning)
            withExtendedLifetime(registration) {}
        }
        let count = shares.withLock { $0.count }
        source.signal(.critical)
        #expect(shares.withLock { $0.count } == count)
    }

    @Test func `signals from many threads end with the newest limits applied, one at a time`() async {
        let memory = makeGuard()
        let state = Mutex<(inside: Int, worst: Int, last: MemoryLimits)>((0, 0, .normal))
        let registration = memory.register(
            MemoryReaction(
                "slow",
                stop: { _ in
                    state.withLock { state in
                        state.inside += 1
                        state.worst = max(state.worst, state.inside)
                    }
                    return 0
                },
                release: { limits in
                    state.withLock { state in
                        state.inside -= 1
                        state.last = limits
                    }
                    return 0
                }
            )
        )
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for _ in 0..<200 {
                        memory.note(MemoryGuard.Signal(task % 2 == 0 ? .warning : .critical, cause: ""))
                    }
                }
            }
        }
        #expect(state.withLock { $0.worst } == 1)
        #expect(state.withLock { $0.last } == memory.limits && memory.limits.level == .critical)
        withExtendedLifetime(registration) {}
    }

    @Test func `a reaction may use the guard`() {
        let memory = makeGuard()
        let seen = Mutex<[MemoryLevel]>([])
        let registration = memory.register(
            MemoryReaction(
                "asks",
                release: { [weak memory] limits in
                    seen.withLock { $0.append(limits.level) }
                    #expect(memory?.limits.level == limits.level)
                    if limits.level == .warning { memory?.note(MemoryGuard.Signal(.critical, cause: "from within")) }
                    return 0
                }
            )
        )
        source.signal(.warning)
        #expect(seen.withLock { $0 } == [.warning, .critical], "What it reports comes after it has returned.")
        withExtendedLifetime(registration) {}
    }

    @Test func `a guard that is turned off lifts its limits`() {
        let memory = makeGuard()
        source.signal(.critical)
        memory.setEnabled(false)
        #expect(memory.limits == .normal)
        source.signal(.critical)
        #expect(memory.limits == .normal && memory.current.reported == .critical)
        memory.setEnabled(true)
        #expect(memory.limits.level == .critical, "What lasts is acted upon.")
    }

    @Test func `while the guard runs, it recovers with time, and observers see each step`() async throws {
        let memory = makeGuard()
        let running = Task { await memory.run(sleeper: clock) }
        let states = memory.states
        var iterator = states.makeAsyncIterator()
        #expect(await iterator.next(isolation: nil) == .initial)
        source.signal(.critical, cause: "test")
        #expect(await iterator.next(isolation: nil)?.limits.level == .critical)
        source.signal(.normal, cause: "over")
        #expect(await iterator.next(isolation: nil)?.reported == .normal)
        var steps: [Int?] = []
        while steps.last != .some(nil) {
            try await clock.waitForSleepers()
            guard let due = clock.nextWakeUp else { break }
            clock.advance(by: due - clock.uptime)
            guard let state = await iterator.next(isolation: nil) else { break }
            steps.append(state.limits.recoveryStep)
        }
        #expect(steps == [1, 2, 3, nil])
        running.cancel()
        await running.value
        #expect(clock.sleeperCount == 0)
    }

    @Test func `a guard without a signal has an explanation`() {
        #expect(makeGuard().explanation == "Set by the app.")
        #expect(!MemoryGuard.systemSource().explanation.isEmpty)
    }

    @Test func `extreme factors leave one load and do not trap`() {
        for factor in [-1, 0, 1e300, .infinity, .nan] as [Double] {
            let limits = MemoryLimits(
                level: .warning,
                cacheShare: factor,
                allowsPrefetch: false,
                concurrencyFactor: factor
            )
            #expect(limits.concurrency(4) >= 1 && limits.concurrency(-3) >= 1)
            #expect((0...Int.max).contains(limits.limit(.max)) && limits.limit(100) <= 100)
        }
    }
}
