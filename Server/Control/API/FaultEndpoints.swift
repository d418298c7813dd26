import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Faults, journeys and scripts, over HTTP.
enum FaultEndpoints {
    static func answer(_ call: ControlCall, _ method: Method, _ rest: [String]) throws(Problem) -> Reply {
        let faults = call.world.control.faults
        if let id = rest.first {
            guard method == .delete else { throw ControlEndpoints.wrongMethod("DELETE") }
            guard faults.remove(id) else {
                let names = faults.all.prefix(20).map(\.fault.id).joined(separator: ", ")
                throw ProblemType.notFound(
                    "There is no fault «\(id.prefix(64))»; there are: \(names.isEmpty ? "none" : names)."
                )
            }
            return ControlEndpoints.done
        }
        switch method {
        case .get: return ControlEndpoints.json(.members(["items": .array(list(faults))]))
        case .delete:
            faults.removeAll()
            return ControlEndpoints.done
        case .post, .put:
            let (reader, errors) = try call.settings()
            let read = readFaults(reader)
            try errors.check()
            if method == .put { faults.removeAll() }
            return ControlEndpoints.json(try set(read, in: call), status: .created)
        default: throw ControlEndpoints.wrongMethod("GET, POST, PUT, DELETE")
        }
    }

    /// One fault, or `{"faults": […]}`.
    private static func readFaults(_ reader: SettingsReader) -> [Fault] {
        var reader = reader
        guard reader.object["faults"] != nil else { return Fault.read(&reader).map { [$0] } ?? [] }
        var faults: [Fault] = []
        for var child in reader.objects("faults") ?? [] {
            if let fault = Fault.read(&child) { faults.append(fault) }
        }
        reader.finish()
        return faults
    }

    private static func set(_ faults: [Fault], in call: ControlCall) throws(Problem) -> JSONValue {
        let named = try call.plane.setFaults(faults, in: call.world)
        let warnings = named.compactMap { fault -> JSONValue? in
            let doubts = doubts(about: fault)
            guard !doubts.isEmpty else { return nil }
            return .object(JSONObject([.init(name: "fault", value: .string(fault.id))] + doubts))
        }
        return .members([
            "items": .array(named.map(\.json)), "warnings": warnings.isEmpty ? nil : .array(warnings),
        ])
    }

    private static func list(_ faults: FaultSet) -> [JSONValue] {
        faults.all.map { fault, strikes in
            var object = fault.json.object ?? JSONObject()
            object["strikes"] = .integer(Int64(strikes))
            for doubt in doubts(about: fault) { object[doubt.name] = doubt.value }
            return .object(object)
        }
    }

    /// What makes a fault look like a mistake: `neverMatches` where it cannot strike, `notServed` where it strikes only
    /// requests that the API does not serve.
    private static func doubts(about fault: Fault) -> [JSONObject.Member] {
        if let reason = fault.reasonItNeverMatches { return [.init(name: "neverMatches", value: .string(reason))] }
        if let reason = fault.reasonItIsNotServed { return [.init(name: "notServed", value: .string(reason))] }
        return []
    }

    // MARK: Journeys

    static func profiles(_ call: ControlCall, _ method: Method, _ rest: [String]) throws(Problem) -> Reply {
        guard let name = rest.first else {
            guard method == .get else { throw ControlEndpoints.wrongMethod("GET") }
            let items = Journey.allCases.map {
                JSONValue.members(["name": .string($0.rawValue), "summary": .string($0.summary)])
            }
            return ControlEndpoints.json(.members(["items": .array(items)]))
        }
        guard let journey = Journey(rawValue: name) else {
            let names = Journey.allCases.map(\.rawValue).joined(separator: ", ")
            throw ProblemType.notFound("There is no profile «\(name.prefix(64))»; there are \(names).")
        }
        switch method {
        case .post:
            var (reader, errors) = try call.settings()
            var match = FaultMatch()
            if var child = reader.child("match") {
                match = FaultMatch.read(&child)
                child.finish()
            }
            reader.finish()
            try errors.check()
            return ControlEndpoints.json(try set(journey.faults(for: match), in: call), status: .created)
        case .delete:
            for fault in journey.faults() { call.world.control.faults.remove(fault.id) }
            return ControlEndpoints.done
        default: throw ControlEndpoints.wrongMethod("POST, DELETE")
        }
    }

    // MARK: Scripts

    static func script(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        guard method == .post else { throw ControlEndpoints.wrongMethod("POST") }
        let (reader, errors) = try call.settings()
        let script = FaultScript.read(reader)
        try errors.check()
        let warnings = try call.plane.run(script, in: call.world)
        return ControlEndpoints.json(
            .members([
                "steps": .integer(Int64(script.steps.count)),
                "warnings": warnings.isEmpty ? nil : .array(warnings.map { .string($0) }),
            ]),
            status: .created
        )
    }
}

/// Timed steps: what happens to a world when, counted from when the script is started, in the world's time.
public struct FaultScript: Sendable {
    enum Deed: Sendable {
        case set([Fault])
        case remove([String])
        case removeAll
        case act(PhantomAct)
        case trick(ChangeTrick)
    }

    struct Step: Sendable {
        let at: Duration
        let deeds: [Deed]
    }

    let steps: [Step]

    /// Reads a script.
    ///
    /// - Throws: a `Problem` that names everything that is wrong with it, each by its JSON pointer.
    public init(json: [UInt8]) throws {
        let errors = SettingsErrors()
        guard case .object(let object) = try JSONParser.parse(json) else {
            throw ProblemType.validationFailed(
                "A script is an object with `steps`.",
                errors: [Problem.FieldError(pointer: "", detail: "must be an object")]
            )
        }
        self = FaultScript.read(SettingsReader(object, errors))
        try errors.check()
    }

    private init(steps: [Step]) { self.steps = steps }

    static func read(_ reader: SettingsReader) -> FaultScript {
        var reader = reader
        var steps: [Step] = []
        if reader.object["steps"] == nil { reader.fail("steps", "is missing") }
        for var step in reader.objects("steps") ?? [] {
            var deeds: [Deed] = []
            let at = step.seconds("atSeconds") ?? .zero
            var faults: [Fault] = []
            for var child in step.objects("faults") ?? [] {
                if let fault = Fault.read(&child) { faults.append(fault) }
            }
            if !faults.isEmpty { deeds.append(.set(faults)) }
            if let journey = step.choice("profile", Journey.self) { deeds.append(.set(journey.faults())) }
            if let remove = step.array("remove") { deeds.append(.remove(remove.compactMap { $0.value.string })) }
            if step.bool("removeAll") { deeds.append(.removeAll) }
            if var child = step.child("act") {
                if let act = PhantomAct.read(&child) { deeds.append(.act(act)) }
                child.finish()
            }
            if var child = step.child("changes") {
                if let trick = ChangeTrick.read(&child) { deeds.append(.trick(trick)) }
                child.finish()
            }
            step.finish()
            steps.append(Step(at: at, deeds: deeds))
        }
        reader.finish()
        return FaultScript(steps: steps)
    }
}

extension ChangeTrick {
    static func read(_ reader: inout SettingsReader) -> ChangeTrick? {
        switch reader.string("trick") {
        case "expire"?:
            if let token = reader.string("token") { return .expire(token: token) }
            if let pages = reader.integer("afterPages", in: 0...1_000_000) { return .expireAfter(pages: pages) }
            return .expireAll
        case "repeatPage"?: return .repeatPage
        case "emptyPage"?: return .emptyPage
        case "reversePage"?: return .reversePage
        case "dropTombstones"?: return .dropTombstones
        default:
            reader.failMissing("trick", "must be one of expire, repeatPage, emptyPage, reversePage, dropTombstones")
            return nil
        }
    }
}

extension ControlPlane {
    /// Refuses what would strike other worlds too.
    private func check(_ faults: [Fault], in world: World) throws(Problem) {
        for fault in faults {
            if case .closeListener = fault.action, world.id != World.mainID {
                throw ProblemType.validationFailed(
                    "The listener belongs to all worlds.",
                    errors: [
                        Problem.FieldError(
                            pointer: "/action/type",
                            detail: "may be closeListener in the world main only"
                        )
                    ]
                )
            }
        }
    }

    /// Sets faults; what they need is prepared.
    func setFaults(_ faults: [Fault], in world: World) throws(Problem) -> [Fault] {
        try check(faults, in: world)
        let named = try world.control.faults.add(faults, now: world.clock.uptime)
        // Behind the setting: a commit in between would end a history that no fault asks for yet.
        if world.control.faults.hasLag {
            do { try world.rememberHistory() } catch {
                for fault in named { world.control.faults.remove(fault.id) }
                throw error
            }
        }
        return named
    }

    /// Starts a script: each step when the world's clock is there. Returns what looks like a mistake.
    func run(_ script: FaultScript, in world: World) throws(Problem) -> [String] {
        for case .set(let faults) in script.steps.flatMap(\.deeds) { try check(faults, in: world) }
        var warnings: [String] = []
        for step in script.steps {
            for deed in step.deeds {
                if case .set(let faults) = deed {
                    warnings += faults.compactMap { fault in
                        (fault.reasonItNeverMatches ?? fault.reasonItIsNotServed).map { "\(fault.id): \($0)" }
                    }
                }
            }
            if step.at == .zero {
                for deed in step.deeds { try perform(deed, in: world) }
            } else {
                _ = world.clock.schedule(after: step.at) { [self] in
                    // What is wrong with a step was said when the script was read; a limit that is reached or a disk that
                    // fails since leaves the step undone, and the journal shows no strike of it.
                    for deed in step.deeds { try? perform(deed, in: world) }
                }
            }
        }
        return warnings
    }

    private func perform(_ deed: FaultScript.Deed, in world: World) throws(Problem) {
        switch deed {
        case .set(let faults): _ = try setFaults(faults, in: world)
        case .remove(let ids): for id in ids { world.control.faults.remove(id) }
        case .removeAll: world.control.faults.removeAll()
        case .act(let act): perform(act, in: world)
        case .trick(let trick): try play(trick, in: world)
        }
    }

    /// Has a trick played on the readers of a world's change feed.
    func play(_ trick: ChangeTrick, in world: World) throws(Problem) {
        switch trick {
        case .dropTombstones:
            try world.write { store, commit in try store.forgetTombstones(before: commit.now + .seconds(1)) }
        case .expireAll: world.control.torture.expire(try world.endHistories())
        default: try world.control.torture.add(trick)
        }
    }
}
