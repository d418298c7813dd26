import Larder
import LarderEvents
import LarderTelemetry
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import LarderDevice

@Suite("Network monitor", .oneMinute)
struct NetworkMonitorTests {
    private let clock = ManualClock()
    private let source = NetworkMonitor.ManualSource()

    private func monitor(
        telemetry: Telemetry = Telemetry(totals: false),
        _ change: (inout NetworkMonitor.Configuration) -> Void = { _ in }
    ) -> NetworkMonitor {
        var configuration = NetworkMonitor.Configuration(seed: 7)
        change(&configuration)
        return NetworkMonitor(
            source: source,
            configuration: configuration,
            clock: clock,
            onEvent: { telemetry.record($0) }
        )
    }

    private func interface(_ index: Int, _ last: UInt8) -> NetworkStatus.Interface {
        NetworkStatus.Interface(name: "eth\(index)", isUp: true, addresses: [[192, 0, 2, last]])
    }

    @Test func `a change of the system's connection takes effect at once`() {
        let monitor = monitor()
        #expect(monitor.level == .good && monitor.current.cause == .nothing)
        source.set(isConnected: false)
        #expect(monitor.isOffline && monitor.current.cause == .noInterface && !monitor.admits())
        #expect(!monitor.behavior.allowsRefresh && !monitor.behavior.allowsPaging && !monitor.behavior.sendsOutbox)
        source.set(isConnected: true)
        #expect(monitor.level == .good && monitor.behavior.allowsPrefetch)
    }

    @Test func `a server on this machine needs no interface`() {
        source.set(isConnected: false)
        #expect(monitor { $0.requiresInterface = false }.level == .good)
    }

    @Test func `an override comes first until it is removed`() {
        let monitor = monitor()
        source.set(isConnected: false)
        monitor.setOverride(.good)
        #expect(monitor.level == .good && monitor.current.cause == .override && monitor.admits())
        monitor.setOverride(.offline)
        #expect(!monitor.admits())
        monitor.setOverride(nil)
        #expect(monitor.current.cause == .noInterface)
    }

    @Test func `a metered network is constrained`() {
        source.set(NetworkStatus(isConnected: true, isMetered: true))
        #expect(monitor().current.cause == .metered && monitor().level == .constrained)
    }

    @Test func `measurements of one network do not count in the next`() {
        let monitor = monitor()
        source.set(NetworkStatus(interfaces: [interface(1, 1)]))
        for _ in 0..<3 { monitor.note(NetworkSample(.unreachable)) }
        #expect(monitor.level == .offline && monitor.current.cause == .experience)
        // A repeated report of the same network changes nothing.
        source.set(
            NetworkStatus(interfaces: [
                interface(1, 1), NetworkStatus.Interface(name: "x", isUp: false),
            ])
        )
        #expect(monitor.level == .offline)
        source.set(NetworkStatus(interfaces: [interface(2, 5)]))
        #expect(monitor.level == .good)
    }

    @Test func `without addresses, networks differ by their interfaces`() {
        func path(_ name: String) -> NetworkStatus {
            NetworkStatus(
                isConnected: true,
                interfaces: [NetworkStatus.Interface(name: name, isUp: true)]
            )
        }
        source.set(path("en0"))
        let monitor = monitor()
        for _ in 0..<3 { monitor.note(NetworkSample(.unreachable)) }
        source.set(path("en0"))
        #expect(monitor.isOffline)
        source.set(path("pdp_ip0"))
        #expect(monitor.level == .good)
    }

    @Test func `an observer gets the current state and then each change, or only the newest if it is slow`() async {
        let monitor = monitor()
        let states = monitor.states
        var iterator = states.makeAsyncIterator()
        #expect(await iterator.next(isolation: nil)?.level == .good)
        source.set(isConnected: false)
        #expect(await iterator.next(isolation: nil)?.level == .offline)
        source.set(isConnected: true)
        source.set(isConnected: false)
        source.set(isConnected: true)
        #expect(await iterator.next(isolation: nil)?.level == .good)
        monitor.note(NetworkSample(.reply, latency: .milliseconds(5)))
        #expect(states.droppedCount == 2, "A sample that changes nothing is no news.")
    }

    @Test func `changes of the level are telemetry, with their cause`() async {
        let telemetry = Telemetry(wall: clock, monotonic: clock)
        let monitor = monitor(telemetry: telemetry)
        let events = telemetry.events()
        source.set(isConnected: false)
        source.set(isConnected: true)
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next(isolation: nil)?.kind == .networkLevel(.offline, from: .good, cause: "noInterface"))
        #expect(await iterator.next(isolation: nil)?.kind == .networkLevel(.good, from: .offline, cause: "nothing"))
        #expect(telemetry.totals.networkLevel == .good && telemetry.totals.networkChanges == 2)
        withExtendedLifetime(monitor) {}
    }

    @Test func `while the monitor runs, the level recovers with time alone`() async throws {
        let monitor = monitor()
        let states = monitor.states
        var iterator = states.makeAsyncIterator()
        _ = await iterator.next(isolation: nil)
        let running = Task { await monitor.run(sleeper: clock) }
        for _ in 0..<3 { monitor.note(NetworkSample(.unreachable)) }
        #expect(await iterator.next(isolation: nil)?.level == .offline)
        monitor.note(NetworkSample(.reply, latency: .milliseconds(50)))
        #expect(await iterator.next(isolation: nil)?.level == .constrained)
        try await clock.waitForSleepers()
        // The return is jittered by up to 30 s: first come what falls due before.
        var level = NetworkLevel.constrained
        for _ in 0..<20 where level != .good {
            clock.advance(by: .seconds(10))
            level = monitor.level
        }
        #expect(await iterator.next(isolation: nil)?.level == .good)
        running.cancel()
        await running.value
        #expect(clock.sleeperCount == 0)
    }

    @Test func `each return waits for its own time, and for none if the network is lost again`() {
        let window = Duration.seconds(60)
        let monitor = monitor { $0.policy.resumeWindow = window }
        source.set(isConnected: false)
        source.set(isConnected: true)
        // The network is lost before the time has come.
        clock.advance(by: ResumeSchedule.delay(within: window, seed: 7, round: 1) - .milliseconds(1))
        #expect(monitor.behavior.isReturning)
        source.set(isConnected: false)
        #expect(!monitor.behavior.isReturning)
        clock.advance(by: .seconds(300))
        source.set(isConnected: true)
        clock.advance(by: ResumeSchedule.delay(within: window, seed: 7, round: 2) - .milliseconds(1))
        #expect(monitor.behavior.isReturning)
        clock.advance(by: .milliseconds(1))
        #expect(!monitor.behavior.isReturning)
    }

    @Test func `a setting says that the network is metered, until it is removed`() {
        let monitor = monitor()
        monitor.setMetered(true)
        #expect(monitor.level == .constrained && monitor.current.cause == .metered && !monitor.behavior.allowsPrefetch)
        source.set(isConnected: true)
        #expect(monitor.level == .constrained)
        monitor.setMetered(nil)
        #expect(monitor.level == .good && monitor.behavior.allowsPrefetch)
    }

    @Test func `when the bytes of a month are spent nothing is prefetched until the next month`() async throws {
        let month = String(clock.now.rfc3339().prefix(7))
        let budget = NetworkMonitor.DataBudget(bytesPerMonth: 100, use: .init(month: month, bytes: 50), clock: clock)
        let monitor = monitor { $0.dataBudget = budget }
        let base = ScriptedTransport { _, _ in .text(String(repeating: "x", count: 30)) }
        let transport = MonitoredTransport(base, monitor: monitor, clock: clock)
        _ = try await transport.send(TransportRequest(url: "http://test/a"))
        #expect(budget.use.bytes == 80 && monitor.level == .good)
        _ = try await transport.send(TransportRequest(url: "http://test/b"))
        #expect(budget.isSpent && monitor.current.cause == .metered && !monitor.behavior.allowsPrefetch)
        #expect(monitor.behavior.allowsUserRefresh)
        clock.advance(by: .seconds(31 * 86_400))
        #expect(!budget.isSpent && budget.use.bytes == 0 && budget.use.month > month)
        #expect(monitor.level == .good)
    }
}
