import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import Larder

/// Who has passed a gate, in order.
private final class Passed: Sendable {
    let numbers = Mutex<[Int]>([])
}

@Suite("Following changes, whatever fails", .oneMinute)
struct ChangeSyncTests {
    private let scene = CacheScene()

    @Test func `a token that cannot be read is no reason to begin anew, which would skip what has changed since`()
        async throws
    {
        let faults = DiskFaults()
        var configuration = scene.configuration()
        configuration.disk.faults = faults
        let cache = try LarderCache(configuration)
        let begun = Mutex(0)
        let read = Mutex<[String]>([])
        let sync = ChangeSync(
            ChangeFeed(
                "test",
                read: { token throws(LarderError) in
                    read.withLock { $0.append(token) }
                    return ChangeBatch([], nextToken: token, hasMore: false)
                },
                present: { () throws(LarderError) in "\(begun.withLock { $0 += 1; return $0 })" },
                invalidateAll: { _ in }
            ),
            into: cache
        )
        try await sync.catchUp()
        faults.fail(.inputOutput, atStep: 1)
        let error = await #expect(throws: LarderError.self) { try await sync.catchUp() }
        #expect(error?.code == .storage)
        #expect(sync.status.failure != nil && !sync.status.isCaughtUp)
        try await sync.catchUp()
        #expect(begun.withLock { $0 } == 1 && read.withLock { $0 } == ["1", "1"] && sync.token == "1")
    }

    @Test
    func `a channel that the server ends at once is not opened again at once, and in the end another kind is tried`()
        async throws
    {
        let opened = Mutex<[LiveKind]>([])
        final class Greeting: LiveChannel {
            let hasGreeted = Mutex(false)
            func receive() async throws(LarderError) -> LiveMessage? {
                hasGreeted.withLock { hasGreeted in
                    defer { hasGreeted = true }
                    return hasGreeted ? nil : .hello(token: "1")
                }
            }
        }
        let cache = try scene.cache()
        let feed = ChangeFeed(
            "test",
            read: { token throws(LarderError) in ChangeBatch([], nextToken: token, hasMore: false) },
            present: { () throws(LarderError) in "1" },
            invalidateAll: { _ in }
        )
        let source = LiveSource([.webSocket, .eventStream]) { kind, _ throws(LarderError) in
            opened.withLock { $0.append(kind) }
            return Greeting()
        }
        let sync = ChangeSync(feed, into: cache)
        let live = LiveSync(sync, source, in: cache)
        let states = SequenceRecorder(live.states)
        let running = Task { await live.run() }
        for failures in 1...3 {
            await states.wait { $0.last == .waiting(failures: failures) }
            #expect(opened.withLock { $0.count } == failures)
            #expect(!sync.status.isCaughtUp)
            try await scene.clock.waitForSleepers()
            if failures < 3 { scene.clock.advance(by: .seconds(9)) }
        }
        #expect(opened.withLock { $0 } == [.webSocket, .webSocket, .eventStream])
        running.cancel()
        await running.value
    }

    @Test func `a gate lets one through at a time, and lets those go at once who are cancelled`() async throws {
        let gate = SerialGate()
        let first = ScriptedSource<Int>()
        let passed = Passed()
        let holding = Task {
            try await gate.run { () async throws(LarderError) in
                do { _ = try await first.fetch(FetchContext()) } catch { throw LarderError(error) }
            }
        }
        await first.waitForRequests(1)
        let waiting = (0..<10).map { number in
            Task {
                try await gate.run { () async throws(LarderError) in passed.numbers.withLock { $0.append(number) } }
            }
        }
        for task in waiting[..<5] { task.cancel() }
        // Those who were cancelled are told at once, though the gate is taken.
        for task in waiting[..<5] {
            let error = await #expect(throws: LarderError.self) { try await task.value }
            #expect(error?.code == .cancelled)
        }
        first.answer(0, .value(1))
        try await holding.value
        for task in waiting[5...] { try await task.value }
        #expect(Set(passed.numbers.withLock { $0 }) == [5, 6, 7, 8, 9])
        try await gate.run { () async throws(LarderError) in passed.numbers.withLock { $0.append(10) } }
        #expect(passed.numbers.withLock { $0.last } == 10)
    }
}
