import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderServer
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport

/// The SDK in a scenario: does what the environment variables ask for, as an app would.
struct ScenarioClient: Sendable {
    /// The scenario's environment lacks a value that its task needs.
    struct Missing: Error {}

    private let run: ScenarioRun
    private let variables: [String: String]
    private let client: LarderClient
    private let clock = SystemMonotonicClock()

    init(_ run: ScenarioRun, directory: String) async throws {
        self.run = run
        variables = run.environment
        var transport = SocketTransport.Configuration()
        if let authority = variables["LARDER_CA"] { transport.tls.roots = .only(file: authority) }
        // A stalled handshake ends with it.
        transport.connectTimeout = .seconds(2)
        var configuration = LarderClient.Configuration(transport: SocketTransport(transport))
        configuration.services = .none
        configuration.followsLive = false
        client = try await LarderClient(
            server: variables["LARDER_URL"] ?? "",
            account: "scenario",
            directory: directory,
            configuration
        )
    }

    /// Signs in and does the task.
    func perform() async throws {
        try await insist { try await client.signIn(handle: self["LARDER_HANDLE"], password: self["LARDER_PASSWORD"]) }
        switch run.scenario.task {
        case .read: try await read()
        case .list: try await report(try await posts())
        case .sync: try await sync()
        case .transfer: try await transfer()
        case .edit: try await edit()
        case .post:
            try client.feed.create(self["LARDER_TEXT"])
            try await client.cache.outbox.drained()
        case .message:
            try client.chat.send(self["LARDER_TEXT"], to: segment(-2))
            try await client.cache.outbox.drained()
        case .like:
            try client.likes.set(true, segment(-2))
            try await client.cache.outbox.drained()
        case .follow: try await follow()
        // These are not of the demo.
        case .write, .own: break
        }
        client.close()
    }

    private subscript(name: String) -> String { variables[name] ?? "" }

    private var rounds: Int { Int(self["LARDER_ROUNDS"]) ?? 1 }

    /// A segment of the path, counted from its end.
    private func segment(_ offset: Int) -> String {
        let segments = self["LARDER_PATH"].split(separator: "/")
        return String(segments[segments.count + offset])
    }

    /// Tries again until the test's time limit, as a person who looks at the screen. The SDK decides when a request is sent.
    @discardableResult private func insist<Value>(_ body: () async throws -> Value?) async throws -> Value {
        while true {
            do { if let value = try await body() { return value } } catch is LarderError {}
            try await clock.sleep(until: clock.uptime + .milliseconds(50))
        }
    }

    private func report(_ held: [String: Int64], isPartial: Bool = false) async throws {
        var body: [String: Any] = ["as": self["LARDER_HANDLE"], "held": held, "partial": isPartial]
        if let types = variables["LARDER_TYPES"] { body["types"] = types }
        let bytes = try JSONSerialization.data(withJSONObject: body)
        let port = try Int(self["LARDER_URL"].split(separator: ":").last ?? "").unwrapped
        let raw = try RawClient(port: port)
        let head =
            "POST /_larder/oracles/converged HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: \(bytes.count)\r\n\r\n"
        try raw.send(Array(head.utf8) + Array(bytes))
        _ = try await raw.reply()
    }

    // MARK: Tasks

    private func read() async throws {
        let (path, id) = (self["LARDER_PATH"], segment(-1))
        for _ in 0..<rounds {
            let version: Int64
            if path.hasPrefix("/v1/profiles/") {
                version = try await shown(
                    .entity(id) { try await client.source.fetch(path, context: $0) },
                    \Profile.version
                )
            } else {
                version = try await shown(
                    .entity(id) { try await client.source.fetch(path, context: $0) },
                    \Account.version
                )
            }
            try await report([id: version], isPartial: true)
        }
    }

    private func shown<Value>(_ resource: Resource<Value>, _ version: (Value) -> Int64) async throws -> Int64 {
        try await insist {
            let snapshot = try await client.cache.snapshot(resource)
            return snapshot.refreshError == nil ? snapshot.value.map(version) : nil
        }
    }

    /// All posts of the feed with their versions.
    private func posts() async throws -> [String: Int64] {
        let timeline = client.feed.timeline
        try await insist { () async throws -> Bool? in
            if try await timeline.snapshot().freshness != .fresh { try await timeline.refresh() }
            for case .gap(let gap) in try await timeline.snapshot().segments { try await timeline.fill(gap) }
            while try await timeline.loadOlder() == .more {}
            return try await timeline.snapshot().hasReachedEnd ? true : nil
        }
        return Dictionary(uniqueKeysWithValues: try await timeline.snapshot().items.map { ($0.id, $0.version) })
    }

    private func sync() async throws {
        for _ in 0..<rounds {
            try await insist { try await client.sync.catchUp() }
            _ = try await posts()
            // What has happened while the pages were loaded.
            try await insist { try await client.sync.catchUp() }
            try await report(try await posts())
        }
    }

    private func transfer() async throws {
        for amount in self["LARDER_AMOUNTS"].split(separator: ",") {
            let order = Bank.TransferOrder(
                from: self["LARDER_FROM"],
                to: self["LARDER_TO"],
                Money(minorUnits: try Int64(amount).unwrapped, currency: self["LARDER_CURRENCY"])
            )
            try await insist {
                // An earlier attempt is in doubt: the outbox finds out, and it must not be ordered again.
                do {
                    let balances = try await client.bank.validatedAccounts()
                    _ = try await client.bank.transfer(order, given: balances)
                } catch let error as LarderError where error.code == .inDoubt {
                    try await client.cache.outbox.drained()
                } catch let error as LarderError where error.code == .rejected {}
                return true
            }
        }
    }

    private func edit() async throws {
        let id = try client.session.userID.unwrapped
        for word in self["LARDER_WORDS"].split(separator: ",") {
            try await insist {
                try await client.profiles.edit(id) { profile in
                    if !profile.bio.split(separator: " ").contains(word) { profile.bio += " \(word)" }
                }
            }
        }
    }

    private func follow() async throws {
        client.live.start()
        for await state in client.live.states { if case .live = state { break } }
        try await report(try await posts())
        // The report has caused two edits. Nothing but the channel and the change feed brings them to the screen.
        try await insist {
            try await client.feed.timeline.snapshot().items.contains { $0.text == "second edit" } ? true : nil
        }
        try await report(try await posts())
    }
}

extension Optional {
    /// The value.
    ///
    /// - Throws: if there is none.
    var unwrapped: Wrapped {
        get throws {
            guard let self else { throw ScenarioClient.Missing() }
            return self
        }
    }
}
