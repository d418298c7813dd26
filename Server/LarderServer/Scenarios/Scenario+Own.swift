import LarderBackend
import LarderCoding

extension Scenario {
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
                let scenario = own(child)
                if let scenario, !names.insert(scenario.name).inserted { child.fail("name", "is that of another one") }
                return scenario
            }
            try reader.check()
            return scenarios
        }
    }

    private static func own(_ reader: BodyReader) -> Scenario? {
        reader.require("name")
        let name = reader.string("name", length: 1...64)
        let (problem, requirement) = (reader.string("problem"), reader.string("requirement"))
        let isSecure = reader.bool("https")
        var given = reader.texts("variables")
        for name in given.keys.sorted() where !name.hasPrefix("LARDER_") {
            reader.fail("variables", "has '\(name)', which does not begin with LARDER_")
        }
        let script = FaultScript.read(reader)
        let (expectations, inOrder, noneOther) = Expectation.list(reader, isRequired: false)
        let conduct = (reader.array("conduct") ?? []).compactMap { element -> ConductReport.Rule? in
            let rule = element.value.string.flatMap { ConductReport.Rule(rawValue: $0) }
            let known = ConductReport.Rule.allCases.map(\.rawValue).joined(separator: ", ")
            if rule == nil { reader.errors.add(element.pointer, "must be one of \(known)") }
            return rule
        }
        let states = reader.objects("state")?.compactMap(WaitEndpoints.state) ?? []
        guard let name else { return nil }
        given["LARDER_TASK"] = given["LARDER_TASK"] ?? name
        let hasFaults = script.steps.contains { step in
            step.operations.contains { if case .set = $0 { true } else if case .follow = $0 { true } else { false } }
        }
        let journal = ScenarioCheck { evidence in
            let report = evidence.verify(expectations, inOrder: inOrder, noneOther: noneOther)
            return report.holds ? nil : report.description
        }
        return Scenario(
            name,
            .own,
            problem ?? "see the steps",
            requirement ?? "see what is expected",
            isSecure: isSecure,
            isOwn: true,
            variables: given,
            exercise: [hasFaults ? .fault("") : .requests(JournalFilter(nil, nil))],
            checks: [journal, .conduct(conduct)] + states.map { .state($0) }
        ) { world, _ in try world.run(script) }
    }
}

extension ScenarioCheck {
    /// A member of a reply has the value at the end.
    fileprivate static func state(_ condition: WaitCondition) -> ScenarioCheck {
        ScenarioCheck { evidence in
            guard case .state(let path, let person, let pointer, let wanted) = condition else { return nil }
            let value = evidence.ask(path, as: person)?.value(at: pointer)
            let text = value.map { $0.string ?? String(decoding: $0.encoded, as: UTF8.self) }
            return text == wanted ? nil : "\(path)\(pointer) is \(text ?? "missing") instead of \(wanted)"
        }
    }
}
