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
}

/// A scenario that cannot be prepared in its world.
struct ScenarioError: Error, CustomStringConvertible {
    let description: String
}
