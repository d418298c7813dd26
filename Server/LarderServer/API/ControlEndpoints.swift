import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// One request to the control plane.
struct ControlCall: Sendable {
    let request: Request
    let exchange: Exchange
    let plane: ControlPlane
    let world: World
    let query: QueryString

    /// The method; HEAD is handled as GET, and the engine omits the content.
    var method: Method { request.method == .head ? .get : request.method }

    /// The body as a settings document.
    func settings() throws(Problem) -> BodyReader {
        try BodyReader(request.body.isEmpty ? JSONObject() : JSONObject(body: request.body))
    }

    /// The parameters as a settings document.
    ///
    /// - Parameter numbers: those that are integers; the others are texts.
    func parameters(numbers: Set<String>) -> BodyReader {
        BodyReader(
            JSONObject(
                query.items.map { item in
                    let number = numbers.contains(item.name) ? Int64(item.value) : nil
                    return .init(name: item.name, value: number.map { .integer($0) } ?? .string(item.value))
                }
            )
        )
    }

    /// Rejects wrong parameters, and those with other names: an ignored filter would give the wrong items.
    func check(_ parameters: BodyReader) throws(Problem) {
        parameters.finish()
        let errors = parameters.errors.all.map { error in
            Problem.FieldError(pointer: String(error.pointer.dropFirst()), detail: error.detail)
        }
        guard let first = errors.first else { return }
        throw ProblemType.invalidParameter("`\(first.pointer.prefix(64))` \(first.detail).", errors: errors)
    }

    func handle(of user: Int64) -> String? { Authenticator.handle(of: user, in: world) }
}

/// The control plane over HTTP, under `/_larder`: the same functions and terms as in the Swift API.
///
/// The functions of a world are under `/_larder/worlds/ID/…`; without a world they apply to `main`.
enum ControlEndpoints {
    static func answer(_ request: Request, _ exchange: Exchange, _ plane: ControlPlane, worldID: String) -> Reply? {
        do throws(Problem) {
            if DashboardEndpoints.isDashboard(request) {
                return try DashboardEndpoints.answer(request, plane.controlGuard)
            }
            try plane.controlGuard.check(request)
            guard let query = QueryString(parsing: Array(request.query ?? [])) else {
                throw ProblemType.invalidParameter("The query is not valid percent-encoded UTF-8.")
            }
            let parts = request.pathText.split(separator: "/").dropFirst()
            var (id, segments) = (worldID, parts.compactMap { QueryString.percentDecoded(Array($0.utf8)) })
            guard segments.count == parts.count else {
                throw ProblemType.invalidParameter("The path is not valid percent-encoded UTF-8.")
            }
            let isAboutAll = segments == ["worlds"]
            if !isAboutAll, segments.first == "worlds" { (id, segments) = (segments[1], Array(segments[2...])) }
            let world = try isAboutAll ? plane.worlds.main : plane.worlds.world(id)
            let call = ControlCall(request: request, exchange: exchange, plane: plane, world: world, query: query)
            if isAboutAll { return later(call) { call throws(Problem) in try WorldEndpoints.answerAll(call) } }
            return try answer(call, segments)
        } catch { return error.reply }
    }

    /// The description of the control plane: the file, with the actions of the table.
    private static let description = FaultKind.describing(in: EmbeddedDocument.controlOpenAPI.json)

    private static func answer(_ call: ControlCall, _ segments: [String]) throws(Problem) -> Reply? {
        let rest = Array(segments.dropFirst())
        let method = call.method
        if let name = segments.first, rest.count > depths[name] ?? 0 {
            throw ProblemType.notFound("The control plane has no '\(segments.joined(separator: "/").prefix(64))'.")
        }
        switch segments.first {
        case nil: return try WorldEndpoints.answer(call, method)
        case "openapi.json":
            guard method == .get else { throw wrongMethod("GET") }
            return json(description)
        case "reset": return later(call) { call throws(Problem) in try WorldEndpoints.reset(call, method) }
        case "snapshots":
            return later(call) { call throws(Problem) in try WorldEndpoints.snapshots(call, method, rest) }
        case "clock": return later(call) { call throws(Problem) in try ClockEndpoints.answer(call, method, rest) }
        case "skew": return try ClockEndpoints.skew(call, method)
        case "faults": return try FaultEndpoints.answer(call, rest)
        case "script": return try FaultEndpoints.script(call, method)
        case "journeys": return try FaultEndpoints.journeys(call, method, rest)
        case "gates": return try GateEndpoints.answer(call, rest)
        case "held": return try GateEndpoints.held(call, method, rest)
        case "journal":
            return later(call) { call throws(Problem) in try JournalEndpoints.answer(call, method, rest) }
        case "verify": return later(call) { call throws(Problem) in try JournalEndpoints.verify(call, method) }
        case "wait": return try WaitEndpoints.wait(call, method)
        case "conduct": return later(call) { call throws(Problem) in try JournalEndpoints.conduct(call, method) }
        case "oracles": return later(call) { call throws(Problem) in try OracleEndpoints.answer(call, method, rest) }
        case "act": return try ScriptedActorEndpoints.act(call, method)
        case "actors": return try ScriptedActorEndpoints.answer(call, rest)
        case "changes": return try ScriptedActorEndpoints.changes(call, method)
        case "dialect": return try ScriptedActorEndpoints.dialect(call, method)
        case "drift": return try ScriptedActorEndpoints.drift(call, method)
        case "files": return later(call) { call throws(Problem) in try files(call, method) }
        case "clients": return try ClientEndpoints.answer(call, method, rest)
        case "metrics": return try MetricsEndpoints.answer(call, method)
        case "recording": return later(call) { call throws(Problem) in try RecordingEndpoints.answer(call, method) }
        case let name?:
            throw ProblemType.notFound(
                "The control plane has no '\(name.prefix(64))'. GET /_larder lists its functions."
            )
        }
    }

    /// Answers when every exchange whose reply was sent is in its journal. The work is done on another thread: it may take long, or wait
    /// for the store of a world, and the loop serves other worlds meanwhile.
    private static func later(
        _ call: ControlCall,
        _ body: @escaping @Sendable (ControlCall) throws(Problem) -> Reply?
    ) -> Reply? {
        let loop = call.exchange.loop
        call.plane.afterBarrier(on: loop) {
            loop.offload {
                let reply: Reply?
                do throws(Problem) { reply = try body(call) } catch { reply = error.reply }
                if let reply { call.exchange.complete(reply) }
            }
        }
        return nil
    }

    /// Requests for what has names: `GET` and `DELETE` of all, `DELETE` of one, and further methods that add.
    ///
    /// - Parameters:
    ///   - items: all of them, in order.
    ///   - add: adds what the request says, and returns the body of the reply.
    static func named(
        _ call: ControlCall,
        _ rest: [String],
        _ noun: String,
        _ items: @autoclosure () -> [(id: String, json: JSONValue)],
        remove: (String) -> Bool,
        removeAll: () -> Void,
        _ methods: [Method] = [.post],
        add: () throws(Problem) -> JSONValue
    ) throws(Problem) -> Reply {
        if rest.count > 1 { throw ProblemType.notFound("A \(noun) has no '\(rest[1].prefix(64))'.") }
        switch (call.method, rest.first) {
        case (.get, nil): return json(.members(["items": .array(items().map(\.json))]))
        case (.delete, nil):
            removeAll()
            return done
        case (.delete, let id?):
            guard remove(id) else { throw missing(noun, id, items().map(\.id)) }
            return done
        case (let method, nil) where methods.contains(method): return json(try add(), status: .created)
        default:
            let taken = ["GET", "DELETE"] + methods.map(\.rawValue)
            throw wrongMethod(rest.isEmpty ? taken.joined(separator: ", ") : "DELETE")
        }
    }

    /// That a name is none of the known ones.
    static func missing(_ noun: String, _ id: String, _ known: [String]) -> Problem {
        let names = known.prefix(20).joined(separator: ", ")
        return ProblemType.notFound(
            "There is no \(noun) '\(id.prefix(64))'. Existing \(noun)s: \(names.isEmpty ? "none" : names)."
        )
    }

    /// How many segments may follow the name of a function; none where it is not listed.
    private static let depths = [
        "snapshots": 2, "clock": 1, "faults": 1, "journeys": 1, "gates": 2, "held": 2, "journal": 2, "oracles": 1,
        "actors": 1, "clients": 2,
    ]

    /// The functions listed by `GET /_larder`.
    static let parts = [
        "worlds", "reset", "snapshots", "clock", "skew", "faults", "script", "journeys", "gates", "held", "journal",
        "verify", "wait", "conduct", "oracles", "act", "actors", "changes", "dialect", "drift", "recording",
        "files", "metrics", "clients",
    ]

    // MARK: Replies

    static func json(_ value: JSONValue, status: Status = .ok) -> Reply { .json(status, value.encoded) }

    static func json(_ members: KeyValuePairs<String, JSONValue?>) -> Reply { json(.members(members)) }

    static func text(_ text: String, mediaType: String = "text/plain; charset=utf-8") -> Reply {
        let fields: Fields = [.contentType: mediaType, .cacheControl: "no-store"]
        return Reply(status: .ok, fields: fields, body: .bytes(Array(text.utf8)))
    }

    static let done = Reply.noContent

    /// - Parameter allowed: the methods in capitals; may contain other words if they depend on the path.
    static func wrongMethod(_ allowed: String) -> Problem {
        var names = allowed.split { !("A"..."Z").contains($0) }.map { String($0) }
        if let place = names.firstIndex(of: "GET") { names.insert("HEAD", at: place + 1) }
        return ProblemType.methodNotAllowed("It takes \(allowed).", fields: [.allow: names.joined(separator: ", ")])
    }
}
