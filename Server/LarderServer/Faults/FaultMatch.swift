import LarderCoding
import LarderEngine
import LarderHTTP

/// A pattern for exchanges. All given members must match; nil or empty members match anything.
public struct FaultMatch: Sendable, Hashable {
    /// The host of the URL, without its port: of `Host`, or in a handshake the one that the client names (SNI).
    public var host: String?
    /// The IP address of the client.
    public var peer: String?
    /// The method, such as `GET`.
    public var method: String?
    /// The path: literal, with `*` for one segment, or with `**` at the end for the rest. Relative to its world, without
    /// `/w/ID`. An invalid pattern matches nothing.
    public var path: String?
    /// The caller's handle.
    public var user: String?
    /// The device: its `Larder-Device` field, or `user:HANDLE`, or `anonymous`.
    public var device: String?
    /// Header fields and their values; `*` for any value.
    public var headers: [String: String] = [:]
    /// Query parameters and their values; `*` for any value.
    public var query: [String: String] = [:]
    /// Values in a JSON body, by JSON pointer; `*` for any value.
    public var body: [String: String] = [:]
    /// The number of the connection in its world, from 1.
    public var connection: Int?
    /// The number of the exchange on its connection, from 1.
    public var exchange: Int?

    /// Matches everything.
    public init() {}

    /// Matches a method on a path pattern.
    public init(_ method: String? = nil, _ path: String? = nil) {
        self.method = method
        self.path = path
    }

    static func read(_ reader: BodyReader) -> FaultMatch {
        var match = FaultMatch()
        match.host = reader.string("host", length: 1...253)?.lowercased()
        match.peer = reader.string("peer", length: 1...64)
        match.method = reader.string("method", length: 1...32).map { $0.uppercased() }
        if let text = reader.string("path") {
            match.path = text
            if PathPattern(text) == nil { reader.fail("path", PathPattern.rule) }
        }
        match.user = reader.string("user", length: 1...64)
        match.device = reader.string("device", length: 1...128)
        match.headers = reader.texts("headers")
        for name in match.headers.keys.sorted() where FieldName(name) == nil {
            reader.fail("headers", "has '\(name)', which is not a valid field name")
        }
        match.query = reader.texts("query")
        if let body = reader.child("body") {
            for member in body.members {
                guard member.name.hasPrefix("/") || member.name.isEmpty else {
                    body.fail(member.name, "must be a JSON pointer")
                    continue
                }
                match.body[member.name] = member.value.text
            }
        }
        match.connection = reader.integer("connection", in: 1...Int(Int32.max))
        match.exchange = reader.integer("exchange", in: 1...Int(Int32.max))
        return match
    }

    /// Whether a member matches what only a request has.
    var requiresRequest: Bool {
        var connectionOnly = FaultMatch()
        (connectionOnly.host, connectionOnly.peer) = (host, peer)
        return self != connectionOnly
    }

    /// Whether a TLS handshake matches: the host that the client names, and its address.
    func matches(handshakeFor name: String?, of client: String) -> Bool {
        !requiresRequest && (host == nil || host?.lowercased() == name?.lowercased())
            && (peer == nil || peer == client)
    }

    var json: JSONValue {
        .members([
            "host": host.map { .string($0) }, "peer": peer.map { .string($0) },
            "method": method.map { .string($0) }, "path": path.map { .string($0) }, "user": user.map { .string($0) },
            "device": device.map { .string($0) }, "headers": JSONValue.texts(headers),
            "query": JSONValue.texts(query), "body": JSONValue.texts(body),
            "connection": connection.map { .integer(Int64($0)) }, "exchange": exchange.map { .integer(Int64($0)) },
        ])
    }
}

/// A compiled match.
struct Matcher: Sendable {
    let match: FaultMatch
    let pattern: PathPattern?
    private let headers: [(FieldName, String)]

    init(_ match: FaultMatch) {
        self.match = match
        pattern = match.path.flatMap { PathPattern($0) }
        headers = match.headers.sorted { $0.key < $1.key }.compactMap { entry in
            FieldName(entry.key).map { ($0, entry.value) }
        }
    }

    /// Whether the exchange matches. A CORS preflight only matches if the method is `OPTIONS`: a browser does not send the
    /// request after a failed preflight and does not report the reason to the page.
    func matches(_ facts: ExchangeFacts) -> Bool {
        guard !facts.request.isPreflight || match.method == Method.options.rawValue else { return false }
        return mismatches(facts, stopsAtFirst: true).isEmpty
    }

    /// Whether method and path match; other members are ignored.
    func names(_ method: Method, _ path: ArraySlice<UInt8>) -> Bool {
        (match.method == nil || match.method == method.rawValue)
            && (match.path == nil || pattern?.matches(path) ?? false)
    }

    struct Mismatch: Sendable, Hashable {
        let member: String
        let wanted: String
        let found: String
    }

    /// What does not match, as expected and actual text.
    func mismatches(_ facts: ExchangeFacts, stopsAtFirst: Bool = false) -> [Mismatch] {
        var found: [Mismatch] = []
        func check(_ member: String, _ wanted: String?, _ value: @autoclosure () -> String, _ fits: Bool) -> Bool {
            guard let wanted, !fits else { return false }
            found.append(Mismatch(member: member, wanted: wanted, found: value()))
            return stopsAtFirst
        }
        let request = facts.request
        if let wanted = match.host {
            let host = request.hostName
            if check("host", wanted, host ?? "absent", host == wanted.lowercased()) { return found }
        }
        if check("peer", match.peer, request.peer.host, request.peer.host == match.peer) { return found }
        if check("method", match.method, request.method.rawValue, request.method.rawValue == match.method) {
            return found
        }
        if check("path", match.path, request.pathText, pattern?.matches(request.path) ?? false) { return found }
        if check("user", match.user, facts.handle ?? "nobody", facts.handle == match.user) { return found }
        if check("device", match.device, facts.device, facts.device == match.device) { return found }
        for (name, wanted) in headers {
            let value = request.fields.combined(name)
            let fits = value.map { wanted == "*" || $0 == wanted } ?? false
            if check("headers/\(name)", wanted, value ?? "absent", fits) { return found }
        }
        if !match.query.isEmpty {
            let query = QueryString(parsing: Array(request.query ?? []))
            for (name, wanted) in match.query.sorted(by: { $0.key < $1.key }) {
                let value = query?.first(name)
                let fits = value.map { wanted == "*" || $0 == wanted } ?? false
                if check("query/\(name)", wanted, value ?? "absent", fits) { return found }
            }
        }
        if !match.body.isEmpty {
            for (pointer, wanted) in match.body.sorted(by: { $0.key < $1.key }) {
                let text = facts.json?.value(at: pointer)?.text
                let fits = text.map { wanted == "*" || $0 == wanted } ?? false
                if check("body\(pointer)", wanted, text ?? "absent", fits) { return found }
            }
        }
        let (connection, exchange) = (match.connection.map(String.init), match.exchange.map(String.init))
        if check("connection", connection, "\(facts.connection)", facts.connection == match.connection) { return found }
        _ = check("exchange", exchange, "\(request.exchangeIndex)", request.exchangeIndex == match.exchange)
        return found
    }
}
