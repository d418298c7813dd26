import LarderTime

/// A named case: what goes wrong in a world, what a client is asked to do there, and what it must do.
///
/// It is judged by what the server has seen: requests, effects in the domain, and what the client reports to hold.
package struct Scenario: Sendable {
    /// What happens in the world at once.
    struct Act: Sendable {
        var script: FaultScript?
        var actors: [ScriptedActor] = []
        /// The offsets of devices' dates.
        var skews: [String: Duration] = [:]
        var drift: SchemaDrift?
        var clockOffset = Duration.zero
        /// Whether all change tokens end, as after the restoring of a snapshot.
        var endsTokens = false

        var hasFaults: Bool {
            script?.steps.contains { step in
                step.operations.contains {
                    if case .set = $0 { true } else if case .follow = $0 { true } else { false }
                }
            } ?? false
        }

        func run(in world: MockWorld) throws {
            if clockOffset != .zero {
                world.clock.run()
                world.clock.set(to: world.clock.now + clockOffset)
            }
            for (device, offset) in skews { world.skewDates(of: device, by: offset) }
            if let drift { world.drift = drift }
            for actor in actors { try world.set(actor) }
            if let script { try world.run(script) }
            if endsTokens { try world.world.replace(with: try world.world.image()) }
        }
    }

    /// The name on the command line.
    package let name: String
    /// What goes wrong.
    package let problem: String
    /// What the client must do.
    package let requirement: String
    /// What the client is asked to do.
    package var task = ScenarioTask.own
    /// How often it does a task that has rounds.
    var rounds = 1
    /// Whether the client uses https.
    let isSecure: Bool
    /// Whether the API is the user's, to which nothing is reported: the command says by its exit code whether it has what it needs.
    var isOwn = true
    /// The variables that the task needs besides its own.
    var variables: [String: String]
    /// Before the client begins.
    var beginning: Act
    /// When the client has reported for the first time.
    var afterFirstReport: Act?
    /// What must have happened for the case to have been tried at all.
    var exercise: [ScenarioExercise]
    var checks: [ScenarioCheck]

    /// The text for `larder-server scenarios NAME`.
    package var description: String {
        """
        \(name)
          problem      \(problem)
          requirement  \(requirement)
          task         \(task.rawValue): \(isOwn && task == .read ? "get LARDER_PATH, and end with 0 if it has arrived" : task.explanation)
        """
    }
}

/// What a client is asked to do (`LARDER_TASK`). A program that can do all of them can be run in every scenario.
package enum ScenarioTask: String, Sendable, CaseIterable {
    case read
    case list
    case sync
    case transfer
    case edit
    case post
    case message
    case like
    case follow
    case write
    case own

    /// The variables that all of its scenarios have unless they say otherwise.
    var variables: [String: String] { Self.definitions[self]?.variables ?? [:] }

    /// The task in a sentence, with its variables.
    package var explanation: String { Self.definitions[self]?.explanation ?? "" }

    private static let definitions: [ScenarioTask: (variables: [String: String], explanation: String)] = {
        let tasks = Scenario.library().child("tasks")
        return allCases.reduce(into: [:]) { definitions, task in
            let reader = tasks?.child(task.rawValue)
            definitions[task] = (reader?.texts("variables") ?? [:], reader?.string("explanation") ?? "")
        }
    }()
}

/// Evidence that a scenario was tried.
enum ScenarioExercise: Sendable {
    /// A fault was applied whose name begins so.
    case fault(String)
    /// Requests have arrived.
    case requests(JournalFilter, atLeast: Int = 1)
    /// The client has reported what it holds.
    case reports(Int)

    /// Why the scenario was not tried; nil if it was.
    func reasonMissing(_ evidence: ScenarioEvidence) -> String? {
        switch self {
        case .fault(let id):
            let faults = evidence.world.faults.filter { $0.fault.id.hasPrefix(id) }
            // A step of the user's may have removed it since.
            let met = evidence.entries.count { $0.faults.contains { $0.hasPrefix(id) } }
            guard max(met, faults.map(\.applications).reduce(0, +)) == 0 else { return nil }
            func texts(_ summary: ((Fault) -> String?)) -> String {
                Set(faults.compactMap { summary($0.fault) }).sorted().joined(separator: ", or ")
            }
            let requests = texts { $0.stage == .handshake ? nil : JournalFilter($0.match).summary }
            guard requests.isEmpty, !faults.isEmpty else {
                return "the client made no request that the fault applies to: \(requests)"
            }
            return "the client began no TLS handshake with \(texts { $0.match.host ?? "the server" })"
        case .requests(let filter, let count):
            let seen = evidence.requests(filter).count
            return seen >= count ? nil : "\(seen) of \(count) × \(filter.summary)"
        case .reports(let count):
            return evidence.reports.count >= count ? nil : "\(evidence.reports.count) of \(count) reports"
        }
    }
}
