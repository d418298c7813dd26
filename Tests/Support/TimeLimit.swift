import Foundation
import LarderTime
import OrderedJobs
import Synchronization
package import Testing

/// How every test runs: alone, with jobs in an order that its name and the seed of the process decide, within a time limit, and without
/// a server that runs after it.
///
/// A test that has failed is repeated with `LARDER_ORDER_SEED=n swift test --filter name`.
package struct AloneWithinTime: SuiteTrait, TestTrait, TestScoping {
    @TaskLocal private static var ending: Ending?
    private static let turns = Turns()

    package let isRecursive = true
    private let limit: Duration

    init(limit: Duration) { self.limit = limit }

    /// Performs an action when the present test has ended, whatever its outcome, and within its time limit. The last one added is the first.
    /// Nothing is done in an exit test: its process ends.
    package static func atEnd(_ action: @escaping @Sendable () async -> Void) {
        ending?.actions.withLock { $0.append(action) }
    }

    package func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

    package func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        // A suite within a suite may have the trait twice.
        guard Self.ending == nil else { return try await function() }
        guard order_is_on() else { return try await perform(function) }
        await Self.turns.begin()
        defer { Self.turns.end() }
        // What earlier tests have left behind ends first.
        await rest()
        order_begin(test.name.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 })
        let listeners = Listeners.open()
        try await perform(function)
        await rest()
        let left = Listeners.open().subtracting(listeners)
        if !left.isEmpty { Issue.record("The test has left \(left.count) listening sockets: stop its servers.") }
    }

    private func perform(_ function: @Sendable () async throws -> Void) async throws {
        try await withoutActuallyEscaping(function) { function in
            let ending = Ending()
            try await Self.$ending.withValue(ending) {
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    group.addTask {
                        do { try await function() } catch {
                            await ending.perform()
                            throw error
                        }
                        await ending.perform()
                        return true
                    }
                    group.addTask { [limit] in
                        try await pass(limit)
                        return false
                    }
                    defer { group.cancelAll() }
                    guard try await group.next() == false else { return }
                    Issue.record("The test has not ended within \(limit). LARDER_TEST_TIME_FACTOR lengthens the limit.")
                }
            }
        }
    }
}

/// What is done at the end of a test.
private final class Ending: Sendable {
    let actions = Mutex<[@Sendable () async -> Void]>([])

    func perform() async {
        while let action = actions.withLock({ $0.popLast() }) { await action() }
    }
}

/// The sockets of the process that listen.
package enum Listeners {
    private static let shared = Mutex<Set<Int32>>([])

    /// Starts a server that all tests of the process share.
    package static func share<Server>(_ start: () throws -> Server) rethrows -> Server {
        let others = open()
        let server = try start()
        let own = open().subtracting(others)
        shared.withLock { $0.formUnion(own) }
        return server
    }

    /// The listening sockets without those of shared servers.
    static func open() -> Set<Int32> {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        let listening = names.compactMap { Int32($0) }.filter { descriptor in
            var isListening: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            return unsafe getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0
                && isListening == 1
        }
        return Set(listening).subtracting(shared.withLock { $0 })
    }
}

/// Lets one test in at a time.
private final class Turns: Sendable {
    private let state = Mutex<(isTaken: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

    func begin() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.isTaken { state.waiting.append(continuation) }
                defer { state.isTaken = true }
                return !state.isTaken
            }
            if isFree { continuation.resume() }
        }
    }

    func end() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.isTaken = false
            return nil
        }
        next?.resume()
    }
}

extension Trait where Self == AloneWithinTime {
    /// One minute for each test, times `LARDER_TEST_TIME_FACTOR` of the environment (a whole number, for slow machines).
    ///
    /// Without that variable the factor is 2, or 10 if tests run at once because `LARDER_ORDER_SEED` is off.
    package static var oneMinute: Self {
        let factor = ProcessInfo.processInfo.environment["LARDER_TEST_TIME_FACTOR"].flatMap { Int($0) }
        return AloneWithinTime(limit: .seconds(60 * max(1, factor ?? (order_is_on() ? 2 : 10))))
    }
}
