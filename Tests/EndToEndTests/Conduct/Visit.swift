import Foundation
import Larder
import LarderEngine
import LarderHTTP
import LarderModels
import LarderResources
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderDemo
@testable import LarderServer

/// A world, a client in it, and the time of both: the client's timers run on the world's clock, which moves only when everything is at
/// rest. Server and client have no threads: they are steps in the order of the process, so that rest is known.
final class Visit: Sendable {
    private static let shared: Result<MockBackend, any Error> = Result {
        var size = WorldSize()
        size.people = 12
        size.posts = 60
        size.conversations = 3
        size.messages = 60
        size.transfers = 60
        var configuration = MockBackend.Configuration()
        configuration.seed = 1
        configuration.journalCapacity = 20_000
        configuration.disableConnectionTimeouts()
        configuration.server.isStepped = true
        return try Listeners.share {
            try MockBackend.start(.generated(size, picturesFrom: MockBackend.fixtures), configuration)
        }
    }

    /// The device of the person's requests in the journal.
    static let device = "ana phone"

    let seed: UInt64
    private let backend: MockBackend
    let world: MockWorld
    let transport: MeteredTransport
    /// Random numbers of the person and of the client.
    let random: Mutex<SeededGenerator>
    private let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
        .path
    private let seen = SeenExchanges()
    private let loop = SocketLoop(isStepped: true)
    /// The work of the server and of the client's sockets.
    private let work: [WorkSource]

    /// - Parameters:
    ///   - seed: decides what the person, the client's jitter and the faults do.
    ///   - backend: a stepped one; nil: that of all visits.
    init(seed: UInt64, _ backend: MockBackend? = nil) throws {
        self.seed = seed
        self.backend = try backend ?? Self.shared.get()
        world = try self.backend.makeWorld(seed: seed)
        random = Mutex(SeededGenerator(seed: seed))
        world.clock.freeze(at: WallTime(seconds: 1_790_000_000))
        transport = MeteredTransport(
            NamedTransport(
                device: Self.device,
                transport: SocketTransport(SocketTransport.Configuration(), clock: world.clock, loop: loop)
            )
        )
        work =
            [WorkSource { [loop] in loop.step().isActive }]
            + self.backend.loops.map { loop in WorkSource { loop.step() } }
        // It delays nothing: it counts the requests that have arrived.
        let none = Distribution.fixed(.zero)
        var own = FaultMatch()
        own.device = Self.device
        try world.set(Fault(id: "meter", .latency(connect: nil, firstByte: none, body: nil), when: own))
        _ = world.world.control.journal.observers.add { [seen] entry in
            let device = ExchangeFacts.device(of: entry.request)
            if entry.isExchange, device == Self.device { seen.note(JournalRecord(entry, handle: nil)) }
        }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: directory)
        try? world.destroy()
    }

    func number(in range: Range<Int>) -> Int { random.withLock { $0.uniform(in: range) } }

    /// The person's client. A second one is the app after a restart.
    func client(live kinds: [LiveSync.Kind]) async throws -> LarderClient {
        var configuration = LarderClient.Configuration(transport: transport)
        let sockets = SocketTransport(SocketTransport.Configuration(), clock: world.clock, loop: loop)
        configuration.webSockets = sockets.webSockets()
        configuration.cache.wallClock = world.clock
        configuration.cache.monotonicClock = world.clock
        configuration.cache.random = { [weak self] in self?.random.withLock { $0.unit() } ?? 0 }
        configuration.services = ManualSources().services {
            ($0.memory, $0.idle, $0.flags) = (.none, .none, .none)
        }
        configuration.liveKinds = kinds
        configuration.followsLive = !kinds.isEmpty
        return try await LarderClient(
            server: world.url,
            account: Self.device,
            directory: directory,
            configuration
        )
    }

    // MARK: Time

    /// Lets time pass. The clock stops at each timer, so that everything happens at its time.
    func pass(_ duration: Duration) async {
        let end = world.clock.uptime + duration
        while world.clock.uptime < end, !Task.isCancelled { await move(until: end) }
    }

    /// Runs `act` to its end and moves the clock as it needs; after `limit` it goes on in the background.
    func perform(limit: Duration = .seconds(40), _ act: @escaping @Sendable () async -> Void) async {
        let isDone = CallCount()
        Task {
            await act()
            isDone.add()
        }
        let end = world.clock.uptime + limit
        while isDone.count == 0, world.clock.uptime < end, !Task.isCancelled {
            await move(until: end) { isDone.count > 0 }
        }
    }

    /// Lets time pass until a condition holds, for at most `limit`.
    func pass(atMost limit: Duration, until holds: () throws -> Bool) async rethrows -> Bool {
        let end = world.clock.uptime + limit
        while !Task.isCancelled {
            if try holds() { return true }
            guard world.clock.uptime < end else { break }
            await pass(.seconds(2))
        }
        return false
    }

    /// - Parameter isDone: whether the act has ended that the time passes for; nil: there is none.
    private func move(until end: MonotonicTime, unless isDone: (() -> Bool)? = nil) async {
        await settle()
        if let isDone, isDone() { return }
        let left = end - world.clock.uptime
        let timer = world.clock.untilNextTimer
        // An act that waits for no timer gains nothing from time.
        if timer == nil, isDone != nil { return }
        let next = timer.map { min($0, left) } ?? left
        world.clock.advance(by: max(next, .nanoseconds(1)))
    }

    /// Returns when nothing can happen before the clock moves.
    private func settle() async {
        await rest()
        // What the kernel has not delivered yet.
        for _ in 0..<50 where !progress.isSettled { await rest() }
    }

    private struct Progress {
        var inFlight: Set<Int>
        var arrived: Int
        var seen: SeenExchanges.State

        /// Whether the server holds every request that the client waits for, and will send nothing before the clock moves.
        var isSettled: Bool {
            inFlight.isDisjoint(with: seen.answered)
                && inFlight.subtracting(seen.silenced).count <= arrived - seen.count
        }
    }

    private var progress: Progress {
        Progress(
            inFlight: transport.inFlight,
            arrived: world.faults.first { $0.fault.id == "meter" }?.applications ?? 0,
            seen: seen.state
        )
    }
}

/// The exchanges of the person's device that are in the journal.
private final class SeenExchanges: Sendable {
    struct State {
        var count = 0
        /// The requests whose reply was sent.
        var answered: Set<Int> = []
        /// The requests that a fault leaves without an end.
        var silenced: Set<Int> = []
    }

    private let present = Mutex(State())

    var state: State { present.withLock { $0 } }

    func note(_ record: JournalRecord) {
        let number = record.requestField(MeteredTransport.field).flatMap { Int($0) }
        present.withLock { state in
            state.count += 1
            guard let number else { return }
            switch record.outcome {
            case "complete": state.answered.insert(number)
            case "silent", "stalled": state.silenced.insert(number)
            default: break
            }
        }
    }
}

/// A number that only grows. Safe from any thread.
final class CallCount: Sendable {
    private let value = Atomic<Int>(0)

    var count: Int { value.load(ordering: .sequentiallyConsistent) }

    func add() { value.add(1, ordering: .sequentiallyConsistent) }
}

/// Numbers the requests, and knows those without a reply.
final class MeteredTransport: Transport {
    static let field = "Larder-Request"

    private struct State {
        var last = 0
        var inFlight: Set<Int> = []
        /// Those that the server delays on purpose.
        var longPolls: Set<Int> = []
    }

    private let base: any Transport
    private let state = Mutex(State())

    init(_ base: any Transport) { self.base = base }

    var inFlight: Set<Int> { state.withLock { $0.inFlight } }

    /// Whether at most a long poll is in flight.
    var isIdle: Bool { state.withLock { $0.inFlight.subtracting($0.longPolls).isEmpty } }

    private func begin(_ request: inout TransportRequest) -> Int {
        let isLongPoll = request.url.contains("wait=")
        let number = state.withLock { state in
            state.last += 1
            state.inFlight.insert(state.last)
            if isLongPoll { state.longPolls.insert(state.last) }
            return state.last
        }
        if let name = FieldName(Self.field) { request.fields.set(name, "\(number)") }
        return number
    }

    private func end(_ number: Int) { _ = state.withLock { $0.inFlight.remove(number) } }

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        var request = request
        let number = begin(&request)
        let end = ContentEnd { [weak self] in self?.end(number) }
        return end.of(try await base.open(request))
    }
}
