import LarderTime

/// A named case: what goes wrong in a world, what a client is asked to do there, and what it must do.
///
/// It is judged by what the server has seen: requests, effects in the domain, and what the client reports to hold.
package struct Scenario: Sendable {
    /// The name on the command line.
    package let name: String
    /// What goes wrong.
    package let problem: String
    /// What the client must do.
    package let requirement: String
    /// What the client is asked to do.
    package let task: ScenarioTask
    /// How often it does a task that has rounds.
    let rounds: Int
    /// Whether the client uses https.
    let isSecure: Bool
    /// Whether the API is the user's, to which nothing is reported: the command says by its exit code whether it has what it needs.
    let isOwn: Bool
    /// Set at the beginning.
    let faults: [Fault]
    /// The variables that the task needs besides its own. Those whose name does not begin with `LARDER_` are for the checks.
    let variables: [String: String]
    /// Sets what depends on the world: actors, and further faults and variables.
    let prepare: @Sendable (MockWorld, inout [String: String]) throws -> Void
    /// What happens when the client has reported for the first time.
    let afterFirstReport: (@Sendable (MockWorld, [String: String]) throws -> Void)?
    /// What must have happened for the case to have been tried at all.
    let exercise: [ScenarioExercise]
    let checks: [ScenarioCheck]

    init(
        _ name: String,
        _ task: ScenarioTask,
        _ problem: String,
        _ requirement: String,
        rounds: Int = 1,
        isSecure: Bool = false,
        isOwn: Bool = false,
        faults: [Fault] = [],
        variables: [String: String] = [:],
        exercise: [ScenarioExercise] = [.fault("fault")],
        checks: [ScenarioCheck],
        prepare: @escaping @Sendable (MockWorld, inout [String: String]) throws -> Void = { _, _ in },
        afterFirstReport: (@Sendable (MockWorld, [String: String]) throws -> Void)? = nil
    ) {
        self.name = name
        self.task = task
        self.problem = problem
        self.requirement = requirement
        self.rounds = rounds
        self.isSecure = isSecure
        self.isOwn = isOwn
        self.faults = faults
        self.variables = variables
        self.exercise = exercise
        self.checks = checks
        self.prepare = prepare
        self.afterFirstReport = afterFirstReport
    }

    /// All scenarios, in the order of the tasks.
    package static let all = reads() + caching + lists + syncs + transfers + edits + sends + live

    /// The cases of this kind that any API can be used in.
    ///
    /// - Parameters:
    ///   - path: what is read by GET; nil: nothing.
    ///   - target: what is written to by POST; nil: nothing.
    package static func ofAnyAPI(reading path: String?, writingTo target: String?) -> [Scenario] {
        (path.map { reads(of: $0) } ?? []) + (target.map { writes(to: $0) } ?? [])
    }

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
    var variables: [String: String] {
        switch self {
        case .read: ["LARDER_PATH": "/v1/profiles/user_2", "shown": "user_2"]
        case .list: ["LARDER_PATH": "/v1/feed", "LARDER_LIMIT": "20", "LARDER_TYPES": "post"]
        case .sync: ["LARDER_LIMIT": "20", "LARDER_TYPES": "post"]
        case .transfer: ["LARDER_AMOUNTS": "125"]
        case .edit: ["LARDER_PATH": "/v1/me", "LARDER_WORDS": "apple"]
        case .post: ["LARDER_PATH": "/v1/posts", "LARDER_TEXT": "written once"]
        case .message: ["LARDER_TEXT": "written once"]
        case .follow:
            [
                "LARDER_PATH": "/v1/live/events?types=post", "LARDER_LIMIT": "100", "LARDER_TYPES": "post",
                "LARDER_SECONDS": "1.5",
            ]
        case .like, .write, .own: [:]
        }
    }

    /// The task in a sentence, with its variables.
    package var explanation: String {
        switch self {
        case .read: "in each of LARDER_ROUNDS rounds show the JSON at LARDER_PATH, and report its version"
        case .list: "read all posts at LARDER_PATH page by page, and report their versions"
        case .sync:
            "in each of LARDER_ROUNDS rounds follow /v1/changes?types=LARDER_TYPES&limit=LARDER_LIMIT to its end, and report what is held"
        case .transfer:
            "transfer each of LARDER_AMOUNTS (minor units of LARDER_CURRENCY) from LARDER_FROM to LARDER_TO, once each"
        case .edit:
            "in each of LARDER_ROUNDS rounds add the next of LARDER_WORDS to the end of `bio` at LARDER_PATH, with If-Match"
        case .post: "publish LARDER_TEXT once (POST LARDER_PATH)"
        case .message: "send LARDER_TEXT once (POST LARDER_PATH with a clientId)"
        case .like: "like the post (PUT LARDER_PATH)"
        case .follow:
            "open the live channel LARDER_PATH, read the changes of LARDER_TYPES, report, follow it for LARDER_SECONDS, report again"
        case .write: "POST something to LARDER_PATH once, and end with 0 if it is done"
        case .own: "what the requirement says, and end with 0 if it is done"
        }
    }
}

/// Evidence that a scenario was tried.
enum ScenarioExercise: Sendable {
    /// A fault was applied whose name begins so.
    case fault(String, atLeast: Int = 1)
    /// Requests have arrived.
    case requests(JournalFilter, atLeast: Int = 1)
    /// The client has reported what it holds.
    case reports(Int)

    /// Why the scenario was not tried; nil if it was.
    func reasonMissing(_ evidence: ScenarioEvidence) -> String? {
        switch self {
        case .fault(let id, let count):
            let faults = evidence.world.faults.filter { $0.fault.id.hasPrefix(id) }
            // A step of the user's may have removed it since.
            let met = evidence.entries.count { $0.trace?.decisions.contains { $0.fault.id.hasPrefix(id) } ?? false }
            guard max(met, faults.map(\.applications).reduce(0, +)) < count else { return nil }
            let expected = Set(faults.map { JournalFilter($0.fault.match).summary }).sorted().joined(separator: ", or ")
            return "the client made no request that the fault applies to: \(expected)"
        case .requests(let filter, let count):
            let seen = evidence.requests(filter).count
            return seen >= count ? nil : "\(seen) of \(count) × \(filter.summary)"
        case .reports(let count):
            return evidence.reports.count >= count ? nil : "\(evidence.reports.count) of \(count) reports"
        }
    }
}
