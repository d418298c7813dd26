import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderServer

/// The backend of the tour, inside this process until `stop`, and a directory for the clients' stores, which ends with the scene.
final class TourScene: Sendable {
    /// The person who uses the clients, and another who writes meanwhile.
    static let person = "ana"
    static let other = "person2"
    static let password = "larder"

    private let backend: MockBackend
    let directory: String
    let clock = SystemMonotonicClock()
    /// How long a person looks at the screen before the next act.
    let pause: Duration
    /// The keys that the chapter about eviction reads; nil: its own.
    let reads: String?

    init(pause: Duration = .seconds(1), reads: String? = nil) throws {
        (self.pause, self.reads) = (pause, reads)
        var size = WorldSize()
        size.people = 20
        size.posts = 240
        size.conversations = 4
        size.messages = 80
        size.transfers = 100
        var configuration = MockBackend.Configuration()
        configuration.seed = 1
        configuration.journalCapacity = 20_000
        backend = try MockBackend.start(.generated(size, picturesFrom: nil), configuration)
        directory =
            FileManager.default.temporaryDirectory.appendingPathComponent("larder-tour-\(UUID().uuidString)")
            .path
    }

    deinit {
        do { try FileManager.default.removeItem(atPath: directory) } catch {
            // Nothing was stored, or the system removes its temporary files itself.
        }
    }

    func stop() async { await backend.stop() }

    /// A world of its own, with the same content each time.
    func world() throws -> MockWorld { try backend.makeWorld(seed: 1) }

    /// A client of the person. A second one of the same device is the app after a restart.
    ///
    /// - Parameter clock: the client's clock, which the caller moves; nil: the system's.
    func client(
        _ world: MockWorld,
        _ device: String = "phone",
        clock: ManualClock? = nil
    ) async throws -> LarderClient {
        var configuration = LarderClient.Configuration()
        if let clock {
            configuration.cache.wallClock = clock
            configuration.cache.monotonicClock = clock
        }
        configuration.services = .none
        configuration.followsLive = false
        let client = try await LarderClient(
            server: world.url,
            account: "\(world.id)-\(device)",
            directory: directory,
            configuration
        )
        if client.session.state == .signedOut {
            try await client.signIn(handle: Self.person, password: Self.password)
        }
        return client
    }

    /// What a body sends and receives, and how long it takes.
    func cost<Value: Sendable>(
        _ world: MockWorld,
        _ body: () async throws -> Value
    ) async throws -> (value: Value, traffic: TourTraffic, time: Duration) {
        let last = await world.journal().last?.number ?? 0
        let begin = clock.uptime
        let value = try await body()
        let time = clock.uptime - begin
        return (value, await TourTraffic(world, after: last), time)
    }

    /// The times of `count` runs, each of which calls the body `calls` times.
    func times(
        _ count: Int,
        calls: Int = 1,
        _ body: () async throws -> Void
    ) async throws -> TelemetryTotals.Histogram {
        var times = TelemetryTotals.Histogram()
        for _ in 0..<count {
            let begin = clock.uptime
            for _ in 0..<calls { try await body() }
            times.record((clock.uptime - begin) / calls)
        }
        return times
    }

    /// Measures cases at the same time; the results are in the order of the cases.
    func atOnce<Case: Sendable, Result: Sendable>(
        _ cases: [Case],
        _ measure: @escaping @Sendable (Case) async throws -> Result
    ) async throws -> [Result] {
        try await withThrowingTaskGroup(of: (Int, Result).self) { group in
            for (index, one) in cases.enumerated() { group.addTask { (index, try await measure(one)) } }
            let results = try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
            return cases.indices.compactMap { results[$0] }
        }
    }
}

/// The requests in the journal of a world.
struct TourTraffic: Sendable, Hashable {
    var requests = 0
    /// The bytes of the replies' heads and bodies.
    var bytes = 0
    var statuses: [Int] = []

    /// - Parameter last: the number of the last journal entry that does not count.
    init(_ world: MockWorld, after last: Int = 0) async {
        for record in await world.journal() where record.isExchange && record.number > last {
            requests += 1
            bytes += record.bytesSent
            statuses.append(record.status ?? 0)
        }
    }

    /// `no request`, `304, 170 B`.
    var text: String {
        guard requests > 0 else { return "no request" }
        var kinds: [Int] = []
        for status in statuses where !kinds.contains(status) { kinds.append(status) }
        let names = kinds.map { status in
            let (count, name) = (statuses.count { $0 == status }, status == 0 ? "no reply" : "\(status)")
            return count == 1 ? name : "\(count) × \(name)"
        }
        return (names + [SizeText.text(Int64(bytes))]).joined(separator: ", ")
    }
}

extension MockWorld {
    /// Does something as another person or device; the reply.
    @discardableResult
    func act(_ method: String, _ path: String, as person: String, _ body: String? = nil) throws
        -> (status: Int, body: [UInt8])
    {
        var action = ScriptedAction(method, path, as: person, body: body)
        if method == "PATCH" { action.headers = ["If-Match": "*", "Content-Type": "application/merge-patch+json"] }
        let reply = perform(action)
        guard (200..<300).contains(reply.status) else {
            throw Failure("The tour's own \(method) \(path) got status \(reply.status).")
        }
        return reply
    }

    /// Sets a fault for each of these methods with a path.
    func fail(_ action: FaultAction, on requests: [(String, String)], _ occurrence: Fault.Occurrence = .init()) throws {
        for (method, path) in requests {
            try set(Fault(id: "\(method) \(path)", action, when: FaultMatch(method, path), occurrence: occurrence))
        }
    }

    /// What the server has at a path.
    func state<Value: Decodable>(_ path: String, as type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(type, from: Data(try act("GET", path, as: TourScene.person).body))
    }

    /// The handle of a user.
    func handle(_ id: String) throws -> String {
        struct Named: Decodable { let handle: String }
        return try state("/v1/profiles/\(id)", as: Named.self).handle
    }
}
