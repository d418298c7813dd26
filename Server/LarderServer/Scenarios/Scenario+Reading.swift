import LarderCoding
import LarderHTTP

/// Scenarios are documents: those of the demo in `scenarios.json`, and those of the user. Both have a beginning, expectations and rules of the
/// conduct report; only the demo's have tasks that the server can judge by its own state.
extension Scenario {
    /// All scenarios of the demo, in the order of the tasks.
    package static let all: [Scenario] = {
        let file = library()
        _ = file.value("tasks")
        let scenarios = (file.objects("scenarios") ?? []).compactMap(ofDemo)
        file.finish()
        if let error = file.errors.all.first {
            preconditionFailure("scenarios.json: \(error.pointer) \(error.detail)")
        }
        return scenarios
    }()

    /// The cases of the demo that any API can be used in.
    ///
    /// - Parameters:
    ///   - path: what is read by GET; nil: nothing.
    ///   - target: what is written to by POST; nil: nothing.
    /// - Throws: for a path that no rule can name.
    package static func ofAnyAPI(
        reading path: String?,
        writingTo target: String?
    ) throws(FileError) -> [Scenario] {
        let read = path.map { String($0.prefix { $0 != "?" }) }
        let file = library(reading: read ?? "/", writingTo: target ?? "/")
        let scenarios: [Scenario] = (file.objects("scenarios") ?? []).filter { $0.bool("anyAPI") }.compactMap {
            reader in
            guard var scenario = common(reader) else { return nil }
            let writes = reader.string("task") == ScenarioTask.transfer.rawValue
            guard let own = writes ? target : path else { return nil }
            scenario.task = writes ? .write : .read
            scenario.variables["LARDER_PATH"] = own
            // There are no reports: the command says by its exit code whether it has what it needs.
            let requests = JournalFilter(writes ? "POST" : "GET", writes ? target : read)
            scenario.checks.append(.informed(by: [requests]))
            if writes { scenario.checks.append(.keyed(requests)) }
            if scenario.isSecure { scenario.checks.append(.secureOnly) }
            return scenario
        }
        if let error = file.errors.all.first { throw FileError("The path \(error.detail): \(error.pointer)") }
        return scenarios
    }

    /// The file of the scenarios, with the paths of those for any API.
    static func library(
        reading path: String = "/v1/profiles/user_2",
        writingTo target: String = "/v1/transfers"
    ) -> BodyReader {
        var text = String(decoding: EmbeddedDocument.scenarios.bytes, as: UTF8.self)
        for (name, path) in [("$READ", path), ("$WRITE", target)] {
            let escaped = JSONValue.string(path).encoded.dropFirst().dropLast()
            text = text.replacing(name, with: String(decoding: escaped, as: UTF8.self))
        }
        do { return BodyReader(try JSONParser.parse(Array(text.utf8)).object ?? JSONObject()) } catch {
            preconditionFailure("scenarios.json is not JSON: \(error)")
        }
    }

    /// The scenarios in a file of the user: `{"scenarios": [{"name": …, "steps": […], "expect": […]}]}`.
    ///
    /// - Throws: an error that names the file and the line.
    package static func own(_ path: String) throws -> [Scenario] {
        let bytes = try SourceFile.bytes(path)
        return try FileError.naming(path, bytes) {
            guard case .object(let object) = try JSONParser.parse(bytes) else {
                throw FileError("\(path): must be an object with `scenarios`")
            }
            let reader = BodyReader(object)
            reader.require("scenarios")
            var names: Set<String> = []
            let scenarios = (reader.objects("scenarios", count: 1...1_000) ?? []).compactMap { child -> Scenario? in
                guard var scenario = common(child) else { return nil }
                if !scenario.beginning.hasFaults, !["expect", "conduct", "state"].contains(where: { child.has($0) }) {
                    child.failMissing(
                        anyOf: ["expect"],
                        "or `conduct` or `state` must say what is required, or `steps` must set a fault"
                    )
                }
                if !names.insert(scenario.name).inserted { child.fail("name", "is that of another one") }
                scenario.variables["LARDER_TASK"] = scenario.variables["LARDER_TASK"] ?? scenario.name
                return scenario
            }
            try reader.check()
            return scenarios
        }
    }

    /// What the cases of the demo and those of the user have in common.
    private static func common(_ reader: BodyReader) -> Scenario? {
        reader.require("name")
        let name = reader.string("name", length: 1...64)
        let (problem, requirement) = (reader.string("problem"), reader.string("requirement"))
        let isSecure = reader.bool("https")
        let variables = reader.texts("variables")
        for name in variables.keys.sorted() where !name.hasPrefix("LARDER_") {
            reader.fail("variables", "has '\(name)', which does not begin with LARDER_")
        }
        let beginning = act(reader)
        let (expectations, inOrder, noneOther) = Expectation.list(reader, isRequired: false)
        let conduct = reader.choices("conduct", ConductReport.Rule.self)
        let states = reader.objects("state")?.compactMap(WaitEndpoints.state) ?? []
        guard let name else { return nil }
        return Scenario(
            name: name,
            problem: problem ?? "see the steps",
            requirement: requirement ?? "see what is expected",
            isSecure: isSecure,
            variables: variables,
            beginning: beginning,
            exercise: [beginning.hasFaults ? .fault("") : .requests(JournalFilter(nil, nil))],
            checks: [.expected(expectations, inOrder: inOrder, noneOther: noneOther), .conduct(conduct)]
                + states.map { .state($0) }
        )
    }

    private static func act(_ reader: BodyReader) -> Act {
        Act(script: reader.has("steps") ? FaultScript.read(reader) : nil)
    }

    private static func ofDemo(_ reader: BodyReader) -> Scenario? {
        guard var scenario = common(reader) else { return nil }
        _ = reader.bool("anyAPI")
        scenario.isOwn = false
        scenario.task = reader.choice("task", ScenarioTask.self) ?? scenario.task
        scenario.rounds = reader.integer("rounds", in: 1...10) ?? 1
        scenario.beginning.actors = (reader.objects("actors") ?? []).map(ScriptedActor.read)
        scenario.beginning.skews = reader.child("skew")?.durations() ?? [:]
        scenario.beginning.drift = reader.child("drift").map(SchemaDrift.read)
        scenario.beginning.clockOffset = .seconds(reader.number("clockOffsetSeconds", in: -1e6...1e6) ?? 0)
        scenario.afterFirstReport = reader.child("afterReport").map { later in
            var act = act(later)
            act.endsTokens = later.bool("endsTokens")
            return act
        }
        if let tried = reader.child("tried") {
            scenario.exercise = (tried.objects("requests") ?? []).compactMap(Expectation.read).map {
                .requests($0.filter, atLeast: $0.atLeast)
            }
            if let fault = tried.string("fault") { scenario.exercise.append(.fault(fault)) }
            if let count = tried.integer("reports", in: 1...10) { scenario.exercise.append(.reports(count)) }
        }
        scenario.checks = checks(reader) + scenario.checks
        return scenario
    }

    /// What the server knows about the demo.
    private static func checks(_ reader: BodyReader) -> [ScenarioCheck] {
        var checks: [ScenarioCheck] = []
        if let count = reader.integer("reports", in: 1...10) { checks.append(.reports(count)) }
        if let child = reader.child("converged") { checks.append(.converged(except: child.string("except"))) }
        if reader.bool("shown") { checks.append(.shown) }
        if reader.bool("secureOnly") { checks.append(.secureOnly) }
        checks += (reader.objects("effect") ?? []).compactMap(WaitEndpoints.state).map { .state($0) }
        if let path = reader.string("pagesOnce") { checks.append(.noPageTwice(path)) }
        if let requests = reader.objects("informed") {
            checks.append(.informed(by: requests.map { JournalFilter(FaultMatch.read($0), kind: .exchange) }))
        }
        return checks
    }
}
