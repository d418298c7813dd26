import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Faults, journeys and scripts over HTTP.
enum FaultEndpoints {
    static let routes =
        ControlRoute.named(
            Fault.noun,
            [.post, .put],
            items: list,
            remove: { $0.world.control.faults.remove($1) },
            removeAll: { $0.world.control.faults.removeAll() },
            add: add
        ) + [
            ControlRoute(.get, "/journeys") { _ in
                .items(
                    Journey.allCases.map { .members(["name": .string($0.rawValue), "summary": .string($0.summary)]) }
                )
            }, ControlRoute(.post, "/journeys/{name}", follow), ControlRoute(.delete, "/journeys/{name}", leave),
            ControlRoute(.get, "/script") { .control($0.world.control.script.json) },
            ControlRoute(.post, "/script", run),
        ]

    private static func add(_ call: ControlCall) throws(Problem) -> JSONValue {
        let reader = try call.settings()
        let read = reader.one(or: "faults", Fault.read)
        try reader.check()
        let isList = reader.object["faults"] != nil
        let named = try call.plane.setFaults(read, in: call.world, replacesAll: call.request.method == .put) {
            isList ? "/faults/\($0)" : ""
        }
        return describe(named, call)
    }

    private static func describe(_ named: [Fault], _ call: ControlCall) -> JSONValue {
        let warnings = named.compactMap { fault -> JSONValue? in
            guard let doubt = call.plane.doubt(about: fault, in: call.world) else { return nil }
            return .members(["fault": .string(fault.id), doubt.name: .string(doubt.reason)])
        }
        return .members([
            "items": .array(named.map(\.json)), "warnings": warnings.isEmpty ? nil : .array(warnings),
        ])
    }

    private static func list(_ call: ControlCall) -> [(id: String, json: JSONValue)] {
        call.world.control.faults.applied.map { fault, applications in
            var object = fault.json.object ?? JSONObject()
            object["applications"] = .integer(Int64(applications))
            if let doubt = call.plane.doubt(about: fault, in: call.world) { object[doubt.name] = .string(doubt.reason) }
            return (fault.id, .object(object))
        }
    }

    // MARK: Journeys and scripts

    private static func journey(_ call: ControlCall) throws(Problem) -> Journey {
        let name = call.parameters[0]
        guard let journey = Journey(rawValue: name) else {
            throw ControlEndpoints.missing("journey", name, Journey.allCases.map(\.rawValue))
        }
        return journey
    }

    private static func follow(_ call: ControlCall) throws(Problem) -> Reply? {
        let journey = try journey(call)
        let reader = try call.settings()
        let match = reader.child("match").map(FaultMatch.read) ?? FaultMatch()
        try reader.check()
        return .control(describe(try call.plane.set(journey, for: match, in: call.world), call), status: .created)
    }

    private static func leave(_ call: ControlCall) throws(Problem) -> Reply? {
        for fault in try journey(call).faults() { call.world.control.faults.remove(fault.id) }
        return .noContent
    }

    private static func run(_ call: ControlCall) throws(Problem) -> Reply? {
        let reader = try call.settings()
        let script = FaultScript.read(reader)
        try reader.check()
        let warnings = try call.plane.run(script, in: call.world)
        let told = warnings.isEmpty ? nil : JSONValue.array(warnings.map { .string($0) })
        return .control(.members(["steps": .int(script.steps.count), "warnings": told]), status: .created)
    }
}

/// Timed steps of a world, relative to the start of the script, in the world's time.
public struct FaultScript: Sendable {
    enum Operation: Sendable {
        case set([Fault])
        case follow(Journey)
        case remove([String])
        case removeAll
        case act(ScriptedAction)
    }

    struct Step: Sendable {
        let at: Duration
        let operations: [Operation]
    }

    let steps: [Step]

    /// Reads a script.
    ///
    /// - Throws: a `Problem` that lists all errors, each with its JSON pointer.
    public init(json: [UInt8]) throws {
        guard case .object(let object) = try JSONParser.parse(json) else {
            throw ProblemType.validationFailed("A script must be an object with `steps`.", at: "", "must be an object")
        }
        let reader = BodyReader(object)
        self = FaultScript.read(reader)
        try reader.check()
    }

    private init(steps: [Step]) { self.steps = steps }

    /// Reads the member `steps`.
    static func read(_ reader: BodyReader) -> FaultScript {
        var steps: [Step] = []
        if reader.object["steps"] == nil { reader.fail("steps", "is missing") }
        for step in reader.objects("steps") ?? [] {
            var operations: [Operation] = []
            let at = step.seconds("atSeconds") ?? .zero
            // What is set stays.
            if step.bool("removeAll") { operations.append(.removeAll) }
            let names = (step.array("remove") ?? []).map { name, pointer in
                if name.string == nil { reader.errors.add(pointer, "must be the name of a fault") }
                return name.string ?? ""
            }
            if !names.isEmpty { operations.append(.remove(names)) }
            let faults = step.objects("faults")?.compactMap(Fault.read) ?? []
            if !faults.isEmpty { operations.append(.set(faults)) }
            if let journey = step.choice("journey", Journey.self) { operations.append(.follow(journey)) }
            if let act = step.child("act").flatMap(ScriptedAction.read) { operations.append(.act(act)) }
            steps.append(Step(at: at, operations: operations))
        }
        return FaultScript(steps: steps)
    }
}

extension ControlPlane {
    /// Rejects faults that the world cannot have.
    ///
    /// - Parameter pointer: the JSON pointer of the fault at an index.
    private func check(_ faults: [Fault], in world: World, at pointer: (Int) -> String) throws(Problem) {
        let errors = BodyErrors()
        var names: Set<String> = []
        for (index, fault) in faults.enumerated() {
            let place = pointer(index) + "/action/"
            if fault.action.kind.needsDomain, !hasDomain {
                errors.add(place + "type", "needs the state of the demo backend, which this server does not have")
            }
            switch fault.action.effect {
            case is CloseListener where world.id != World.mainID:
                errors.add(
                    place + "type",
                    "may be closeListener in the world main only, because all worlds share the port"
                )
            case let canned as CannedReply: for error in canned.headerErrors { errors.add(place + "headers", error) }
            case let wrong as WrongContentType where wrong.value?.hasControlCharacter ?? false:
                errors.add(place + "value", "has a control character")
            default: break
            }
            if !fault.id.isEmpty, !names.insert(fault.id).inserted {
                errors.add(pointer(index) + "/id", "is that of another fault of the request")
            }
            if !fault.appliesToChannels, let path = fault.match.path, hasDomain, backend.isChannel(path, in: world) {
                errors.add(
                    place + "type",
                    "changes a reply with a whole body, and the content of \(path) has no known end"
                )
            }
            if fault.stage == .handshake, world.id != World.mainID {
                errors.add(
                    pointer(index) + "/stage",
                    "may be handshake in the world main only, because all worlds share the port"
                )
            }
        }
        try errors.check()
    }

    /// Why a fault may have no effect: `neverMatches` if it can never apply, `notServed` if it only matches requests that the API does not
    /// serve.
    fileprivate func doubt(about fault: Fault, in world: World) -> (name: String, reason: String)? {
        let needsTLS = fault.stage == .handshake && !servesTLS
        if let reason = fault.whyNeverMatched
            ?? (needsTLS ? "The server does not serve https: start it with --tls." : nil)
            ?? fault.match.whyNobodyMatches(in: world, readsWorldPaths: readsWorldPaths)
        {
            return ("neverMatches", reason)
        }
        return hasDomain ? fault.whyNotServed(by: backend, in: world).map { ("notServed", $0) } : nil
    }

    /// Sets faults and prepares what they need.
    ///
    /// - Parameters:
    ///   - replacesAll: whether all other faults of the world are removed.
    ///   - pointer: the JSON pointer of the fault at an index, for errors.
    func setFaults(
        _ faults: [Fault],
        in world: World,
        replacesAll: Bool = false,
        at pointer: (Int) -> String = { _ in "" }
    ) throws(Problem) -> [Fault] {
        try check(faults, in: world, at: pointer)
        let (control, now) = (world.control, world.clock.uptime)
        let named = try control.faults.add(faults, now: now, seed: control.seed, replacesAll: replacesAll)
        // After the faults are set: otherwise a commit in between would end a history that no fault uses yet.
        if world.control.faults.hasLag {
            do { try world.rememberHistory() } catch {
                for fault in named { world.control.faults.remove(fault.id) }
                throw error
            }
        }
        return named
    }

    /// Sets the faults of a journey, starting now.
    func set(_ journey: Journey, for match: FaultMatch = FaultMatch(), in world: World) throws(Problem) -> [Fault] {
        try setFaults(faults(of: journey, for: match, in: world), in: world)
    }

    /// The faults of a journey that a world can have: TLS handshakes belong to `main`, and some actions need the demo backend.
    private func faults(of journey: Journey, for match: FaultMatch = FaultMatch(), in world: World) -> [Fault] {
        let hasHandshakes = servesTLS && world.id == World.mainID
        return journey.faults(for: match).filter { fault in
            (hasHandshakes || fault.stage != .handshake) && (hasDomain || !fault.action.kind.needsDomain)
        }
    }

    /// The faults that an operation of a script sets; nil if it does something else.
    private func faults(of operation: FaultScript.Operation, in world: World) -> [Fault]? {
        switch operation {
        case .set(let faults): faults
        case .follow(let journey): faults(of: journey, in: world)
        default: nil
        }
    }

    /// Rejects a script that the world cannot have: its faults, and the removal of one that neither the script nor the world has. Names
    /// that the server makes are not known yet.
    func check(_ script: FaultScript, in world: World) throws(Problem) {
        for (index, step) in script.steps.enumerated() {
            for faults in step.operations.compactMap({ self.faults(of: $0, in: world) }) {
                try check(faults, in: world) { "/steps/\(index)/faults/\($0)" }
            }
        }
        let all = script.steps.flatMap(\.operations)
        let known = world.control.faults.all.map(\.id) + all.compactMap { faults(of: $0, in: world) }.joined().map(\.id)
        let errors = BodyErrors()
        for (index, step) in script.steps.enumerated() {
            for case .remove(let ids) in step.operations {
                for (place, id) in ids.enumerated() where !known.contains(id) && !id.hasPrefix(Fault.noun + "-") {
                    let similar = NearestName.similar(to: id, in: known).first.map { "; did you mean '\($0)'?" } ?? ""
                    errors.add("/steps/\(index)/remove/\(place)", "is no fault of the script or the world\(similar)")
                }
            }
        }
        try errors.check()
    }

    /// Checks a script and starts it. Returns warnings.
    func run(_ script: FaultScript, in world: World) throws(Problem) -> [String] {
        try check(script, in: world)
        let progress = ScriptProgress(stepCount: script.steps.count)
        return try start(script, progress, in: world)
    }

    /// Starts a script that was checked: each step runs at its time on the world's clock. Returns warnings.
    func start(_ script: FaultScript, _ progress: ScriptProgress, in world: World) throws(Problem) -> [String] {
        var warnings: [String] = []
        world.control.script = progress
        for (index, step) in script.steps.enumerated() {
            for operation in step.operations {
                warnings += (faults(of: operation, in: world) ?? []).compactMap { fault in
                    doubt(about: fault, in: world).map { "\(fault.id): \($0.reason)" }
                }
            }
            if step.at == .zero {
                var rejection: JSONValue?
                for operation in step.operations { rejection = try perform(operation, in: world) ?? rejection }
                progress.ran(step: index + 1, at: .zero, error: rejection)
            } else {
                world.clock.plan(after: step.at) { [self] in
                    guard !progress.isCancelled else { return }
                    var error: JSONValue?
                    for operation in step.operations {
                        do throws(Problem) { error = try perform(operation, in: world) ?? error } catch let problem {
                            error = JSONValue(displaying: problem.encoded())
                        }
                    }
                    progress.ran(step: index + 1, at: step.at, error: error)
                }
            }
        }
        return warnings
    }

    /// Returns the body of the reply to an action that was rejected.
    private func perform(_ operation: FaultScript.Operation, in world: World) throws(Problem) -> JSONValue? {
        switch operation {
        case .set(let faults): _ = try setFaults(faults, in: world)
        case .follow(let journey): _ = try set(journey, in: world)
        case .remove(let ids): for id in ids { world.control.faults.remove(id) }
        case .removeAll: world.control.faults.removeAll()
        case .act(let act):
            let reply = perform(act, in: world)
            return reply.status.code < 400 ? nil : JSONValue(displaying: reply.bytes)
        }
        return nil
    }
}
