import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderDevice
@testable import LarderEvents

@Suite("Network monitor and memory guard while they run", .oneMinute)
struct NetworkUpkeepTests {
    /// A source that records whether it was released.
    private final class Source: NetworkMonitor.Source, MemoryGuard.Source {
        let network = NetworkMonitor.ManualSource()
        let memory = MemoryGuard.ManualSource()
        let explanation = "Told by a test."
        var status: NetworkStatus { network.status }

        func observe(_ body: @escaping @Sendable (NetworkStatus) -> Void) -> EventRegistration { network.observe(body) }

        func observe(_ body: @escaping @Sendable (MemoryGuard.Signal) -> Void) -> EventRegistration {
            memory.observe(body)
        }
    }

    private let clock = ManualClock()

    private func monitor(_ source: any NetworkMonitor.Source, _ window: Duration = .seconds(60)) -> NetworkMonitor {
        var configuration = NetworkMonitor.Configuration(seed: 7)
        configuration.policy.resumeWindow = window
        return NetworkMonitor(source: source, configuration: configuration, clock: clock)
    }

    /// The earliest deadline of the sleepers. A sleeper that is woken early sleeps again.
    private func nextWakeUp() async throws -> MonotonicTime {
        while true {
            try await clock.waitForSleepers()
            if let next = clock.nextWakeUp { return next }
        }
    }

    @Test func `a monitor and a guard hold their sources until they are closed`() throws {
        weak var source: Source?
        let (monitor, memory): (NetworkMonitor, MemoryGuard)
        do {
            let made = Source()
            source = made
            monitor = self.monitor(made)
            memory = MemoryGuard(source: made, clock: clock)
        }
        // The test holds no reference, and the source still reports.
        do {
            let network = try #require(source)
            network.network.set(isConnected: false)
            network.memory.signal(.warning)
        }
        #expect(monitor.isOffline && memory.current.reported == .warning)
        monitor.close()
        #expect(source != nil)
        memory.close()
        #expect(source == nil, "What a system's source holds open is closed.")
        #expect(monitor.isOffline && memory.current.reported == .warning, "What was known stays.")
        monitor.note(NetworkStatus(isConnected: true))
        #expect(!monitor.isOffline)
    }

    @Test func `the behavior is posted on each change, including the end of a return`() async throws {
        let source = NetworkMonitor.ManualSource()
        let monitor = monitor(source)
        let behaviors = monitor.behaviors
        var iterator = behaviors.makeAsyncIterator()
        #expect(await iterator.next(isolation: nil) == .unrestricted)
        source.set(isConnected: false)
        #expect(await iterator.next(isolation: nil)?.allowsRefresh == false)
        let running = Task { await monitor.run(sleeper: clock) }
        source.set(isConnected: true)
        let returning = await iterator.next(isolation: nil)
        #expect(returning?.isReturning == true && returning?.refreshesByItself == false)
        #expect(returning?.allowsRefresh == true && returning?.allowsUserRefresh == true && monitor.admits())
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(60))
        #expect(await iterator.next(isolation: nil) == .unrestricted)
        monitor.policy.good.allowsPrefetch = false
        #expect(await iterator.next(isolation: nil)?.allowsPrefetch == false)
        running.cancel()
        await running.value
    }

    @Test func `mayTry does not use up a probe`() {
        let monitor = monitor(NetworkMonitor.ManualSource())
        #expect(monitor.mayTry && monitor.nextProbe == nil)
        for _ in 0..<3 { monitor.note(NetworkSample(.unreachable)) }
        #expect(!monitor.mayTry && monitor.nextProbe.map { $0 <= clock.uptime + .seconds(2) } == true)
        clock.advance(by: .seconds(2))
        for _ in 0..<10 { #expect(monitor.mayTry) }
        #expect(monitor.admits() && !monitor.admits() && !monitor.mayTry)
    }

    @Test func `a person's request is admitted while only measurements say offline, and what it needs too`() async {
        let source = NetworkMonitor.ManualSource()
        let monitor = monitor(source)
        for _ in 0..<3 { monitor.note(NetworkSample(.unreachable)) }
        let due = monitor.nextProbe
        #expect(monitor.behavior.isOfflineByExperience && !monitor.mayTry && !monitor.admits())
        let asked = RequestReason("feed", cause: "a refresh", isUserInitiated: true)
        let renewal = RequestReason("session", cause: "the access token must be renewed")
        await asked.around { await renewal.around { #expect(monitor.mayTry && monitor.admits() && monitor.admits()) } }
        await renewal.around { #expect(!monitor.mayTry && !monitor.admits()) }
        #expect(monitor.nextProbe == due)
        source.set(isConnected: false)
        await asked.around { #expect(!monitor.mayTry && !monitor.admits()) }
        #expect(!monitor.behavior.isOfflineByExperience)
    }

    @Test func `while measurements say offline, probes are sent until one finds the network`()
        async throws
    {
        let source = NetworkMonitor.ManualSource()
        let monitor = monitor(source, .zero)
        for _ in 0..<3 { monitor.note(NetworkSample(.unreachable)) }
        let sent = Mutex<[MonotonicTime]>([])
        let isBack = Mutex(false)
        let clock = clock
        let probing = Task {
            await monitor.probe(sleeper: clock) {
                guard monitor.admits() else { return }
                sent.withLock { $0.append(clock.uptime) }
                let isBack = isBack.withLock { $0 }
                monitor.note(NetworkSample(isBack ? .reply : .unreachable, latency: .milliseconds(5)))
            }
        }
        var waits: [Duration] = []
        for _ in 0..<7 {
            let next = try await nextWakeUp()
            waits.append(next - clock.uptime)
            clock.advance(by: next - clock.uptime)
        }
        for (wait, longest) in zip(waits, [2, 4, 8, 16, 32, 60, 60]) {
            #expect(wait <= .seconds(longest) && wait >= .seconds(longest) * 0.75, "\(waits)")
        }
        // Many clients do not ask at the same time, and none asks at equal intervals.
        #expect(waits[5] != waits[6], "\(waits)")
        // The seventh probe failed too, and the next one is scheduled.
        _ = try await nextWakeUp()
        #expect(sent.withLock { $0.count } == 7)
        isBack.withLock { $0 = true }
        let behaviors = monitor.behaviors
        var iterator = behaviors.makeAsyncIterator()
        #expect(await iterator.next(isolation: nil)?.allowsRefresh == false)
        clock.advance(by: .seconds(60))
        #expect(await iterator.next(isolation: nil)?.refreshesByItself == true)
        #expect(sent.withLock { $0.count } == 8 && monitor.level == .constrained)
        // If the system reports no network, no probe is sent.
        for _ in 0..<3 { monitor.note(NetworkSample(.unreachable)) }
        source.set(isConnected: false)
        #expect(monitor.nextProbe == nil && !monitor.mayTry)
        probing.cancel()
        await probing.value
        #expect(clock.sleeperCount == 0)
    }

    @Test func `an override that lasts past the time of a probe only delays it`() async throws {
        let monitor = monitor(NetworkMonitor.ManualSource())
        for _ in 0..<3 { monitor.note(NetworkSample(.unreachable)) }
        let count = Mutex(0)
        let clock = clock
        let probing = Task { await monitor.probe(sleeper: clock) { count.withLock { $0 += 1 } } }
        try await clock.waitForSleepers()
        monitor.setOverride(.offline)
        clock.advance(by: .seconds(2))
        await rest()
        #expect(count.withLock { $0 } == 0 && monitor.nextProbe == nil)
        monitor.setOverride(nil)
        await rest()
        #expect(count.withLock { $0 } == 1)
        probing.cancel()
        await probing.value
    }

    @Test func `a probe that reports nothing is used up`() async throws {
        let monitor = monitor(NetworkMonitor.ManualSource())
        for _ in 0..<3 { monitor.note(NetworkSample(.unreachable)) }
        let count = Mutex(0)
        let clock = clock
        let probing = Task { await monitor.probe(sleeper: clock) { count.withLock { $0 += 1 } } }
        for _ in 0..<3 {
            try await clock.waitForSleepers()
            clock.advance(by: .seconds(60))
        }
        try await clock.waitForSleepers()
        #expect(count.withLock { $0 } == 3)
        probing.cancel()
        await probing.value
    }

    @Test func `a thousand clients that lost the network together return spread over time`() {
        // What the server takes of so many: 15 requests a second; the window of 100 s makes 10. `ResumeTests` does it with ten
        // times as many, without the monitors around the decision.
        let limit = 15
        let source = NetworkMonitor.ManualSource()
        var generator = SeededGenerator(seed: 11)
        var clients = (0..<1_000).map { _ in
            var configuration = NetworkMonitor.Configuration(seed: generator.next())
            configuration.policy.resumeWindow = .seconds(100)
            return NetworkMonitor(source: source, configuration: configuration, clock: clock)
        }
        source.set(isConnected: false)
        clock.advance(by: .seconds(600))
        source.set(isConnected: true)
        var arrivals: [Int] = []
        for _ in 0..<20 {
            clock.advance(by: .seconds(5))
            let before = clients.count
            clients.removeAll { !$0.behavior.isReturning }
            arrivals.append(before - clients.count)
        }
        #expect(clients.isEmpty, "\(clients.count) did not come back")
        #expect((arrivals.max() ?? .max) <= 5 * limit && (arrivals.min() ?? 0) >= 5 * 5, "\(arrivals)")
    }
}
