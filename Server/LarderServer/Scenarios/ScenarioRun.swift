import LarderCoding
import LarderTLS
import LarderTime
import Synchronization

/// One run of a client in one scenario: a server of its own, with the scenario's world as `main`.
package final class ScenarioRun: Sendable {
    /// The result of a run.
    package struct Result: Sendable {
        /// Whether the client has met the requirements, if it has met the problem at all.
        package enum Outcome: Sendable, Equatable {
            case passed
            /// Each requirement that was not met.
            case failed([String])
            /// The client did not do what the scenario is about, so nothing is known.
            case notExercised(String)
        }

        package let name: String
        package let outcome: Outcome
        /// The number of exchanges.
        package let exchanges: Int
        /// What the client must do, in a sentence.
        package let requirement: String
        /// The exchanges with the faults that were applied, a line each.
        package let steps: [String]

        package init(name: String, outcome: Outcome, exchanges: Int, requirement: String, steps: [String] = []) {
            (self.name, self.outcome, self.exchanges) = (name, outcome, exchanges)
            (self.requirement, self.steps) = (requirement, steps)
        }
    }

    package let scenario: Scenario
    private let backend: MockBackend
    /// The environment variables for the client.
    package let environment: [String: String]
    /// The certificate of the authority that a client must trust; nil for a scenario without https.
    private let authority: TemporaryFile?
    /// Why the step after the first report could not be done.
    private let stepError = Mutex<(any Error)?>(nil)

    /// Starts a server for the scenario and prepares its world.
    ///
    /// - Parameters:
    ///   - routes: the user's own routes; nil for none.
    ///   - data: a directory of the user's own collections; nil for none. Without both it is the demo.
    /// - Throws: if no port is free, a file cannot be used, or the world cannot be prepared.
    package init(_ scenario: Scenario, routes: String? = nil, data: String? = nil) throws {
        self.scenario = scenario
        var configuration = MockBackend.Configuration()
        configuration.seed = 1
        configuration.certificates = scenario.isSecure ? .temporary : nil
        var size = WorldSize()
        size.people = 12
        size.posts = 60
        size.conversations = 6
        size.messages = 60
        size.tasks = 12
        size.transfers = 60
        configuration.routes = routes
        let demo = routes == nil ? WorldSource.generated(size, picturesFrom: nil) : .empty
        backend = try MockBackend.start(data.map { .collections(directory: $0) } ?? demo, configuration)
        let world = backend.main
        var variables = [
            "LARDER_SCENARIO": scenario.name, "LARDER_TASK": scenario.task.rawValue,
            "LARDER_URL": scenario.isSecure ? "https://localhost:\(backend.port)" : world.url,
            "LARDER_SERVER": backend.url, "LARDER_ROUNDS": String(scenario.rounds),
        ]
        if !scenario.isOwn {
            variables["LARDER_HANDLE"] = "ana"
            variables["LARDER_PASSWORD"] = "larder"
            variables["LARDER_TOKEN"] = DeveloperToken.text(for: "ana")
            variables["LARDER_REPORT"] = backend.url + "/_larder/oracles/converged"
        }
        authority = try backend.authorityPEM.map { pem throws(TLSError) in try TemporaryFile(pem) }
        if let authority { variables["LARDER_CA"] = authority.path }
        variables.merge(scenario.task.variables.merging(scenario.variables) { $1 }) { $1 }
        environment = variables
        try scenario.beginning.run(in: world)
        guard let later = scenario.afterFirstReport else { return }
        _ = world.world.control.heldReports.observers.add { [weak self] number in
            guard number == 1, let self else { return }
            do { try later.run(in: world) } catch { stepError.withLock { $0 = error } }
        }
    }

    /// The world, for clients in this process.
    package var world: MockWorld { backend.main }

    /// Judges what the client has done until now.
    ///
    /// - Parameter isSuccess: whether the client says that it has what it needs, which counts in the user's own API.
    /// - Throws: if the client has changed the world so that the scenario could not go on.
    package func judge(_ isSuccess: Bool = true) async throws -> Result {
        if let error = stepError.withLock({ $0 }) { throw error }
        let control = backend.main.world.control
        if let failure = control.script.failure { throw ScenarioError(description: failure) }
        let evidence = await ScenarioEvidence(backend.main, variables: environment)
        let exchanges = control.journal.exchangeCountEver
        func result(_ outcome: Result.Outcome) -> Result {
            Result(
                name: scenario.name,
                outcome: outcome,
                exchanges: exchanges,
                requirement: scenario.requirement,
                steps: evidence.entries.filter(\.isExchange).map { entry in
                    Verifier.line(entry) + entry.faults.map { "  ⚡\($0)" }.joined()
                }
            )
        }
        if let reason = scenario.exercise.lazy.compactMap({ $0.reasonMissing(evidence) }).first {
            return result(.notExercised(reason))
        }
        var failures = try scenario.checks.compactMap { try $0.failure(evidence) }
        if scenario.isOwn, !isSuccess { failures.append("the command must end with exit code 0") }
        return result(failures.isEmpty ? .passed : .failed(failures))
    }

    /// What goes on in the server (`MockBackend.activity`).
    package func activity() async -> [String] { await backend.activity() }

    /// Stops the server.
    package func stop() async { await backend.stop() }
}
