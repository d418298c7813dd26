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
    /// The values of the path's parameters, in order.
    let parameters: [String]

    /// The body as a settings document.
    func settings() throws(Problem) -> BodyReader {
        try BodyReader(request.body.isEmpty ? JSONObject() : JSONObject(body: request.body))
    }

    /// The parameters as a settings document.
    ///
    /// - Parameter numbers: those that are integers; the others are texts.
    func settings(numbers: Set<String>) -> BodyReader {
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

/// A function of the control plane: its method and its path below that of a world.
struct ControlRoute: Sendable {
    typealias Answer = @Sendable (ControlCall) throws(Problem) -> Reply?

    let method: Method
    let path: PathTemplate
    /// The first segment of the path.
    let part: String
    /// Nil if the exchange is completed later.
    let answer: Answer

    /// - Parameter template: a valid one, as in OpenAPI.
    init(_ method: Method, _ template: String, _ answer: @escaping Answer) {
        guard let path = PathTemplate(template) else { preconditionFailure("\(template) is no template.") }
        part = template.split(separator: "/").first.map { String($0) } ?? ""
        (self.method, self.path, self.answer) = (method, path, answer)
    }

    /// A route that answers when every exchange whose reply was sent is in its journal. The work is done on another thread: it may take long,
    /// or wait for the store of a world, and the loop serves other worlds meanwhile.
    static func later(_ method: Method, _ template: String, _ answer: @escaping Answer) -> ControlRoute {
        ControlRoute(method, template) { call throws(Problem) in
            let loop = call.exchange.loop
            call.plane.afterBarrier(on: loop) {
                loop.offload {
                    let reply: Reply?
                    do throws(Problem) { reply = try answer(call) } catch { reply = error.reply }
                    if let reply { call.exchange.complete(reply) }
                }
            }
            return nil
        }
    }

    /// The routes of what has names: all of them, the removal of one and of all, and further methods that add.
    ///
    /// - Parameters:
    ///   - items: all of them, in order.
    ///   - add: adds what the request says, and returns the body of the reply.
    static func named(
        _ noun: String,
        _ methods: [Method] = [.post],
        items: @escaping @Sendable (ControlCall) -> [(id: String, json: JSONValue)],
        remove: @escaping @Sendable (ControlCall, String) -> Bool,
        removeAll: @escaping @Sendable (ControlCall) -> Void,
        add: @escaping @Sendable (ControlCall) throws(Problem) -> JSONValue
    ) -> [ControlRoute] {
        let path = "/\(noun)s"
        return [
            ControlRoute(.get, path) { .items(items($0).map(\.json)) },
            ControlRoute(.delete, path) { call in
                removeAll(call)
                return .noContent
            },
            ControlRoute(.delete, path + "/{id}") { call throws(Problem) in
                let id = call.parameters[0]
                guard remove(call, id) else { throw ControlEndpoints.missing(noun, id, items(call).map(\.id)) }
                return .noContent
            },
        ]
            + methods.map { method in
                ControlRoute(method, path) { call throws(Problem) in .control(try add(call), status: .created) }
            }
    }
}

/// The control plane over HTTP, under `/_larder`: the same functions and terms as in the Swift API.
///
/// The functions of a world are under `/_larder/worlds/ID/…`; without a world they apply to `main`.
enum ControlEndpoints {
    static let routes: [ControlRoute] =
        WorldEndpoints.routes + ClockEndpoints.routes + FaultEndpoints.routes + GateEndpoints.routes
        + JournalEndpoints.routes + OracleEndpoints.routes + ScriptedActorEndpoints.routes + RecordingEndpoints.routes
        + FileEndpoints.routes + ClientEndpoints.routes
        + [
            ControlRoute(.get, "/openapi.json") { _ in .control(description) },
            ControlRoute(.post, "/wait", WaitEndpoints.wait), ControlRoute(.get, "/metrics", MetricsEndpoints.read),
        ]

    /// The functions listed by `GET /_larder`.
    static let parts = routes.map(\.part).reduce(into: [String]()) { parts, part in
        if !parts.contains(part), part != "", part != "openapi.json" { parts.append(part) }
    }

    /// The description of the control plane: the file, with the actions of the table.
    private static let description = FaultKind.describing(in: EmbeddedDocument.controlOpenAPI.json)

    static func answer(_ request: Request, _ exchange: Exchange, _ plane: ControlPlane, worldID: String) -> Reply? {
        do throws(Problem) {
            if DashboardEndpoints.isDashboard(request) {
                return try DashboardEndpoints.answer(request, plane.controlGuard)
            }
            try plane.controlGuard.check(request)
            guard let query = QueryString(parsing: Array(request.query ?? [])) else {
                throw ProblemType.invalidParameter("The query is not valid percent-encoded UTF-8.")
            }
            guard let path = PathTemplate.segments(request.path) else {
                throw ProblemType.invalidParameter("The path is not valid percent-encoded UTF-8.")
            }
            var (id, segments) = (worldID, path.dropFirst().filter { !$0.isEmpty })
            let isAboutAll = segments == ["worlds"]
            if segments.first == "worlds", segments.count > 1 { (id, segments) = (segments[1], Array(segments[2...])) }
            let world = try isAboutAll ? plane.worlds.main : plane.worlds.world(id)
            guard isAboutAll || segments != ["worlds"] else {
                throw ProblemType.notFound("A world has no worlds. GET /_larder/worlds lists all of them.")
            }
            let (route, parameters) = try route(request.method == .head ? .get : request.method, segments)
            return try route.answer(
                ControlCall(
                    request: request,
                    exchange: exchange,
                    plane: plane,
                    world: world,
                    query: query,
                    parameters: parameters
                )
            )
        } catch { return error.reply }
    }

    /// The route for a path, with the values of its parameters. Literal paths come before those with parameters.
    private static func route(_ method: Method, _ segments: [String]) throws(Problem) -> (ControlRoute, [String]) {
        let found = routes.compactMap { route in
            route.path.values(segments.isEmpty ? [""] : segments).map { (route, $0) }
        }
        if let match = found.first(where: { $0.0.method == method }) { return match }
        guard !found.isEmpty else {
            let name = segments.joined(separator: "/").prefix(64)
            throw ProblemType.notFound("The control plane has no '\(name)'. GET /_larder lists its functions.")
        }
        throw wrongMethod(found.map(\.0.method))
    }

    static func wrongMethod(_ allowed: [Method]) -> Problem {
        var names: [String] = []
        for name in allowed.flatMap({ $0 == .get ? ["GET", "HEAD"] : [$0.rawValue] }) where !names.contains(name) {
            names.append(name)
        }
        let list = names.joined(separator: ", ")
        return ProblemType.methodNotAllowed("It takes \(list).", fields: [.allow: list])
    }

    /// That a name is none of the known ones.
    static func missing(_ noun: String, _ id: String, _ known: [String]) -> Problem {
        let names = known.prefix(20).joined(separator: ", ")
        return ProblemType.notFound(
            "There is no \(noun) '\(id.prefix(64))'. Existing \(noun)s: \(names.isEmpty ? "none" : names)."
        )
    }
}

/// Replies of the control plane.
extension Reply {
    static func control(_ value: JSONValue, status: Status = .ok) -> Reply { .json(status, value.encoded) }

    static func control(_ members: KeyValuePairs<String, JSONValue?>) -> Reply { control(.members(members)) }

    static func items(_ items: [JSONValue]) -> Reply { control(["items": .array(items)]) }

    static func control(text: String, mediaType: String = "text/plain; charset=utf-8") -> Reply {
        let fields: Fields = [.contentType: mediaType, .cacheControl: "no-store"]
        return Reply(status: .ok, fields: fields, body: .bytes(Array(text.utf8)))
    }
}
