import Larder
import LarderStorage
import LarderTelemetry
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderEvents

@Suite("Telemetry", .oneMinute)
struct TelemetryTests {
    private let clock = ManualClock()

    private func telemetry(totals: Bool = true) -> Telemetry {
        Telemetry(totals: totals, wall: clock, monotonic: clock)
    }

    @Test func `an event that is not needed is not created`() {
        let telemetry = telemetry(totals: false)
        let made = Mutex(0)
        func kind() -> TelemetryEvent.Kind {
            made.withLock { $0 += 1 }
            return .merged(feature: "feed")
        }
        telemetry.record(kind())
        #expect(made.withLock { $0 } == 0 && !telemetry.isActive)
        do {
            let events = telemetry.events()
            telemetry.record(kind())
            #expect(made.withLock { $0 } == 1)
            _ = events
        }
        telemetry.record(kind())
        #expect(made.withLock { $0 } == 1, "The listener is gone.")
        telemetry.setTotals(true)
        telemetry.record(kind())
        #expect(telemetry.totals.features["feed"]?.merged == 1)
        telemetry.setTotals(false)
        telemetry.record(kind())
        #expect(made.withLock { $0 } == 2 && telemetry.totals.events == 1)
    }

    @Test func `a listener gets later events in order and with their times`() async {
        let telemetry = telemetry()
        telemetry.record(.note(name: "before"))
        let events = telemetry.events()
        telemetry.record(.note(name: "first"))
        clock.advance(by: .seconds(3))
        telemetry.record(.note(name: "second"))
        var iterator = events.makeAsyncIterator()
        let first = await iterator.next(isolation: nil)
        let second = await iterator.next(isolation: nil)
        #expect(first?.kind == .note(name: "first") && second?.kind == .note(name: "second"))
        #expect(first?.sequence == 2 && second?.sequence == 3)
        #expect(second.flatMap { event in first.map { event.uptime - $0.uptime } } == .seconds(3))
        #expect(second?.wall == clock.now)
    }

    @Test func `a slow listener loses the oldest events, which are counted`() async {
        let telemetry = telemetry()
        let events = telemetry.events(bufferedAtMost: 3)
        for number in 1...10 { telemetry.record(.note(name: "\(number)")) }
        #expect(events.droppedCount == 7 && telemetry.totals.eventsDropped == 7)
        var iterator = events.makeAsyncIterator()
        let sequence = await iterator.next(isolation: nil)?.sequence
        #expect(sequence == 8)
    }

    @Test func `listening ends with the task or the telemetry`() async {
        let telemetry = telemetry()
        let events = telemetry.events()
        let cancelled = Task {
            var count = 0
            for await _ in events { count += 1 }
            return count
        }
        cancelled.cancel()
        #expect(await cancelled.value == 0)

        let short = Mutex<Telemetry?>(Telemetry(wall: clock, monotonic: clock))
        let last = short.withLock { $0?.events() }
        short.withLock { $0?.record(.note(name: "one")) }
        short.withLock { $0 = nil }
        var names: [TelemetryEvent.Kind] = []
        if let last { for await event in last { names.append(event.kind) } }
        #expect(names == [.note(name: "one")], "What was there is delivered before the end.")
    }

    @Test func `a waiting reader is woken by events of any thread`() async {
        let telemetry = telemetry()
        let events = telemetry.events(bufferedAtMost: 100_000)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask { for _ in 0..<500 { telemetry.record(.merged(feature: "\(task)")) } }
            }
            group.addTask {
                var last: UInt64 = 0
                for await event in events {
                    #expect(event.sequence == last + 1)
                    last = event.sequence
                    if last == 2_000 { break }
                }
            }
        }
        #expect(telemetry.totals.all.merged == 2_000)
    }

    @Test func `events of a store are reported`() throws {
        let telemetry = telemetry()
        let directory = StoreDirectory()
        var configuration = DiskStore.Configuration(directory: directory.path, clock: clock)
        configuration.onEvent = { telemetry.record($0) }
        try DiskStore(configuration).put(
            DiskRecord("a", payload: [1], recordedAt: clock.now, expiresAt: clock.now + .seconds(60))
        )
        for name in directory.files where name.hasSuffix("-wal") || name.hasSuffix("-shm") {
            try directory.truncate(name, to: 0)
        }
        try directory.overwrite("store.sqlite", at: 0, with: [UInt8](repeating: 7, count: 4_096))
        _ = try DiskStore(configuration).record("a")
        #expect(telemetry.totals.storesRecovered == 1)
    }

    @Test func `waiting events can be taken without suspension`() {
        let telemetry = telemetry()
        let events = telemetry.events(bufferedAtMost: 200)
        for _ in 0..<300 { telemetry.record(.merged(feature: "x")) }
        #expect(events.takeAvailable().map(\.sequence) == Array(101...300))
        #expect(events.takeAvailable().isEmpty)
        telemetry.record(.merged(feature: "x"))
        #expect(events.takeAvailable().map(\.sequence) == [301])
    }

    /// One event of each kind, in which each text that an app or a server can fill has the secret.
    private static func everyKind(_ secret: String) -> [TelemetryEvent.Kind] {
        let kinds: [TelemetryEvent.Kind] = [
            .tierHit(.memory, feature: "feed", bytes: 7), .tierMiss(.disk, feature: "feed"),
            .eviction(.memory, reason: "cost"), .merged(feature: "feed"),
            .revalidated(feature: "feed", bytesSaved: 1), .retry(feature: "feed", attempt: 2, delay: .zero),
            .outbox(.rejected, depth: 1), .sync(feature: "changes", applied: 1, remaining: nil),
            .image(.decode, duration: .zero), .memoryLevel(.warning, from: .normal, cause: "no pressure"),
            .memoryWarning(.critical, cost: 1, requests: 2, loads: 3),
            .memoryReaction(.critical, loadsCancelled: 1, bytesFreed: 2),
            .networkLevel(.offline, from: .good, cause: "metered"),
            .gateRejected(feature: "accounts", reason: "notValidated"),
            .request(feature: "feed", status: 200, duration: .zero, bytesReceived: 1),
            .firstContent(feature: "feed", from: .disk, after: .zero),
            .storeRecovered(store: secret, kept: 1, isOutboxWhole: true), .flagChanged(key: secret),
            .note(name: "failed feed", detail: secret),
        ]
        for kind in kinds {
            // A new kind belongs into the list above.
            switch kind {
            case .tierHit, .tierMiss, .eviction, .merged, .revalidated, .retry, .outbox, .sync, .image, .memoryLevel,
                .memoryWarning, .memoryReaction, .networkLevel, .gateRejected, .request, .firstContent,
                .storeRecovered, .flagChanged, .note:
                break
            }
        }
        return kinds
    }

    /// Records an event of each kind, and returns what a log gets.
    private func logged(_ secret: String, showsPrivate: Bool = false) async -> [String] {
        let telemetry = telemetry()
        let lines = Mutex<[String]>([])
        let log = telemetry.log(showsPrivate: showsPrivate) { severity, line in
            lines.withLock { $0.append("\(severity.rawValue) \(line)") }
        }
        for kind in Self.everyKind(secret) { telemetry.record(kind) }
        // A log that is ended has all events that were recorded before.
        log.cancel()
        await log.value
        return lines.withLock { $0 }
    }

    @Test func `a log gets a line for each event in order, with private texts hidden unless it asks for them`() async {
        let secret = "ana@example.org\n/v1/accounts/acct_1"
        let kinds = Self.everyKind(secret)
        let lines = await logged(secret)
        #expect(lines.map { $0.split(separator: " ")[1] } == kinds.map { $0.name[...] })
        for line in lines { #expect(!line.contains("ana@example") && !line.contains("acct_1"), "\(line)") }
        #expect(lines[0] == "debug tierHit tier=memory feature=feed bytes=7")
        #expect(lines[10] == "warning memoryWarning level=critical cost=1 requests=2 loads=3")
        #expect(
            lines.suffix(3) == [
                "warning storeRecovered store=<private> kept=1 isOutboxWhole=true", "info flagChanged key=<private>",
                "notice note name=failed feed detail=<private>",
            ]
        )
        let open = await logged(secret, showsPrivate: true)
        #expect(open.last == "notice note name=failed feed detail=ana@example.org /v1/accounts/acct_1")
        #expect(open.prefix(16) == lines.prefix(16))
    }
}
