import LarderCoding

/// What the server knows after a client was run.
struct ScenarioEvidence: Sendable {
    let world: MockWorld
    /// The exchanges and frames, oldest first.
    let entries: [JournalEntry]
    let conduct: ConductReport
    let reports: [HeldReports.Report]
    /// The variables of the scenario.
    let variables: [String: String]

    init(_ world: MockWorld, variables: [String: String]) async {
        self.world = world
        self.variables = variables
        entries = await world.entries
        conduct = await world.conduct
        reports = world.world.control.heldReports.all
    }

    /// The matching exchanges.
    func requests(_ filter: JournalFilter) -> [JournalEntry] {
        let matcher = JournalMatcher(filter, in: world.world)
        return entries.filter { matcher.matches($0) }
    }

    func verify(_ expectations: [Expectation], inOrder: Bool, noneOther: Bool) -> VerificationReport {
        Verifier(entries: entries, dropped: world.world.control.journal.dropped, world: world.world)
            .verify(expectations, inOrder: inOrder, noneOther: noneOther)
    }

    /// The JSON of a reply in the present state.
    func ask(_ path: String, as person: String? = "ana") -> JSONValue? { world.value(path, as: person) }
}

extension MockWorld {
    /// The JSON at a path, as a person sees it; nil if the API rejects it.
    func value(_ path: String, as person: String? = "ana") -> JSONValue? {
        let reply = look(at: path, as: person)
        return reply.status == 200 ? try? JSONParser.parse(reply.body) : nil
    }

    /// The value of a member of the JSON at a path.
    func text(_ path: String, _ pointer: String) throws -> String {
        guard let value = value(path)?.value(at: pointer) else {
            throw ScenarioError(description: "the world has no \(pointer) at \(path)")
        }
        return value.text
    }

    /// Performs an action that must succeed.
    func perform(
        _ method: String,
        _ path: String,
        as person: String,
        _ body: JSONValue? = nil,
        _ headers: [String: String] = [:]
    ) throws {
        let text = body.map { String(decoding: $0.encoded, as: UTF8.self) }
        var act = ScriptedAction(method, path, as: person, body: text)
        act.headers = headers
        let reply = perform(act)
        guard reply.status < 300 else {
            throw ScenarioError(description: "\(method) \(path) as \(person) was answered with \(reply.status)")
        }
    }
}

/// A scenario that cannot be prepared in its world.
struct ScenarioError: Error, CustomStringConvertible {
    let description: String
}
