import LarderCoding
import LarderEngine
import LarderHTTP
import Synchronization

/// Connected clients over HTTP: their reports, joined with the journal, and what they are asked to do.
enum ClientEndpoints {
    /// What a client can be asked to do, with the member that says to what.
    private static let actions: [(name: String, member: String?)] = [
        ("show", "key"), ("hide", "key"), ("invalidate", "key"), ("refresh", "key"), ("offline", nil), ("online", nil),
        ("drop", "operation"),
    ]
    private static let reportLimit: Duration = .seconds(2)
    /// A refresh is a request of the client.
    private static let actionLimit: Duration = .seconds(35)

    static let routes = [
        ControlRoute(.get, "/clients", list), ControlRoute(.get, "/clients/connect", connect),
        ControlRoute(.post, "/clients/{id}/{action}", act),
    ]

    /// The WebSocket of a client.
    private static func connect(_ call: ControlCall) throws(Problem) -> Reply? {
        guard call.request.isWebSocketUpgrade else {
            let fields: Fields = [.upgrade: "websocket", .connection: "upgrade"]
            throw ProblemType.upgradeRequired("Connect with a WebSocket client.", fields: fields)
        }
        guard call.plane.clients.hasRoom else {
            let limit = InspectedClients.countMaximum
            throw ProblemType.limitReached("\(limit) clients are connected.", limit: limit)
        }
        return .webSocket(WebSocketAcceptance(handler: InspectedClient(call.plane.clients, in: call.world.id)))
    }

    private struct Gathering {
        var missing: Int
        var items: [Int: JSONValue] = [:]
    }

    private static func list(_ call: ControlCall) throws(Problem) -> Reply? {
        let (clients, loop) = (call.plane.clients, call.exchange.loop)
        let numbers = clients.numbers(in: call.world.id)
        guard !numbers.isEmpty else { return .items([]) }
        let gathering = SharedState(Gathering(missing: numbers.count))
        let questions = numbers.map { number in
            clients.ask(number, "report", on: loop, within: reportLimit) { answer in
                let items = gathering.state.withLock { state -> [Int: JSONValue]? in
                    state.missing -= 1
                    // A client that does not answer is shown without a report.
                    state.items[number] = answer?["report"] ?? .null
                    return state.missing == 0 ? state.items : nil
                }
                guard let items else { return }
                loop.offload { call.exchange.complete(reply(items, call.world)) }
            }
        }
        call.exchange.whenAbandoned { for question in questions { clients.withdraw(question) } }
        return nil
    }

    private static func reply(_ items: [Int: JSONValue], _ world: World) -> Reply {
        let judged = Verdicts(of: world, for: items.values.flatMap { $0["requests"]?.array ?? [] })
        return .items(
            items.sorted { $0.key < $1.key }.map { number, report in
                var item = JSONObject([JSONObject.Member(name: "id", value: .integer(Int64(number)))])
                for member in report.object?.members ?? [] { item[member.name] = member.value }
                if let requests = report["requests"]?.array {
                    item["requests"] = .array(requests.map { judged.joined($0) })
                }
                return .object(item)
            }
        )
    }

    private static func act(_ call: ControlCall) throws(Problem) -> Reply? {
        let (id, name) = (call.parameters[0], call.parameters[1])
        guard let action = actions.first(where: { $0.name == name }) else {
            let names = actions.map(\.name).joined(separator: ", ")
            throw ProblemType.notFound("A client cannot '\(name.prefix(32))'; it can \(names).")
        }
        let clients = call.plane.clients
        guard let number = Int(id), clients.numbers(in: call.world.id).contains(number) else {
            throw ProblemType.notFound("There is no client '\(id.prefix(32))'. GET /_larder/clients lists all.")
        }
        let reader = try call.settings()
        var members = JSONObject()
        switch action.member {
        case "key"?:
            let key = reader.string("key", length: 1...1_000)
            if key == nil { reader.failMissing("key", "must be the key of a value of the report") }
            members["key"] = key.map { .string($0) }
        case "operation"?:
            let operation = reader.integer("operation", in: 1...Int.max)
            if operation == nil { reader.failMissing("operation", "must be the id of an operation of the report") }
            members["operation"] = operation.map { .integer(Int64($0)) }
        default: break
        }
        try reader.check()
        let exchange = call.exchange
        let question = clients.ask(number, name, members, on: exchange.loop, within: actionLimit) { answer in
            let failure = answer == nil ? "The client did not answer." : answer?["error"]?.string
            exchange.complete(failure.map { ProblemType.clientFailed($0).reply } ?? .noContent)
        }
        exchange.whenAbandoned { clients.withdraw(question) }
        return nil
    }

    /// The journal's word about the requests of clients, by their `X-Request-ID`.
    private struct Verdicts {
        private var entries: [String: JournalEntry] = [:]

        init(of world: World, for requests: [JSONValue]) {
            let wanted = Set(requests.compactMap { $0["id"]?.string })
            guard !wanted.isEmpty else { return }
            for entry in world.control.journal.entries {
                guard case .exchange = entry.kind, let id = entry.request.fields[.requestID], wanted.contains(id) else {
                    continue
                }
                entries[id] = entry
            }
        }

        /// The request with the number of its entry and the verdicts on it.
        func joined(_ request: JSONValue) -> JSONValue {
            guard let id = request["id"]?.string, let entry = entries[id], var object = request.object else {
                return request
            }
            object["entry"] = .integer(Int64(entry.number))
            if !entry.verdicts.isEmpty { object["verdicts"] = .array(entry.verdicts.map(\.json)) }
            return .object(object)
        }
    }
}

/// State that callbacks share.
private final class SharedState<Value: ~Copyable & Sendable>: Sendable {
    let state: Mutex<Value>

    init(_ value: consuming sending Value) { state = Mutex(value) }
}
