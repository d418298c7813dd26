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

/// What a member of a match or of a filter requires.
struct MatchCondition<Subject>: Sendable {
    let member: String
    let wanted: String
    /// Whether any value fits.
    let isAny: Bool
    /// What is said of a subject without the value.
    let absent: String
    /// The value of a subject; nil without one.
    let value: @Sendable (Subject) -> String?

    func fits(_ subject: Subject) -> Bool {
        let value = value(subject)
        return value == wanted || isAny && value != nil
    }

    func mismatch(_ subject: Subject) -> Mismatch? {
        fits(subject) ? nil : Mismatch(member: member, wanted: wanted, found: value(subject) ?? absent)
    }
}

struct Mismatch: Sendable, Hashable {
    let member: String
    let wanted: String
    let found: String
}

extension Array {
    /// Requires a value, unless none is wanted.
    ///
    /// - Parameter takesAny: whether `*` is any value.
    mutating func add<Subject>(
        _ member: String,
        _ wanted: String?,
        orElse absent: String = "absent",
        takesAny: Bool = false,
        _ value: @escaping @Sendable (Subject) -> String?
    ) where Element == MatchCondition<Subject> {
        guard let wanted else { return }
        let isAny = takesAny && wanted == "*"
        append(Element(member: member, wanted: wanted, isAny: isAny, absent: absent, value: value))
    }
}

/// A compiled match.
struct Matcher: Sendable {
    let match: FaultMatch
    let pattern: PathPattern?
    private let conditions: [MatchCondition<ExchangeFacts>]

    init(_ match: FaultMatch) {
        self.match = match
        let pattern = match.path.flatMap { PathPattern($0) }
        self.pattern = pattern
        var conditions: [MatchCondition<ExchangeFacts>] = []
        conditions.add("host", match.host?.lowercased()) { $0.request.hostName }
        conditions.add("peer", match.peer) { $0.request.peer.host }
        conditions.add("method", match.method) { $0.request.method.rawValue }
        conditions.add("path", match.path, orElse: "no pattern") { [path = match.path] facts in
            pattern.map { $0.matches(facts.request.path) ? path ?? "" : facts.request.pathText }
        }
        conditions.add("user", match.user, orElse: "nobody") { $0.handle }
        conditions.add("device", match.device) { $0.device }
        for (text, wanted) in match.headers.sorted(by: { $0.key < $1.key }) {
            guard let name = FieldName(text) else { continue }
            conditions.add("headers/\(name)", wanted, takesAny: true) { $0.request.fields.combined(name) }
        }
        for (name, wanted) in match.query.sorted(by: { $0.key < $1.key }) {
            conditions.add("query/\(name)", wanted, takesAny: true) {
                QueryString(parsing: Array($0.request.query ?? []))?.first(name)
            }
        }
        for (pointer, wanted) in match.body.sorted(by: { $0.key < $1.key }) {
            conditions.add("body\(pointer)", wanted, takesAny: true) { $0.json?.value(at: pointer)?.text }
        }
        conditions.add("connection", match.connection.map(String.init)) { "\($0.connection)" }
        conditions.add("exchange", match.exchange.map(String.init)) { "\($0.request.exchangeIndex)" }
        self.conditions = conditions
    }

    /// Whether the exchange matches. A CORS preflight only matches if the method is `OPTIONS`: a browser does not send the
    /// request after a failed preflight and does not report the reason to the page.
    func matches(_ facts: ExchangeFacts) -> Bool {
        (!facts.request.isPreflight || match.method == Method.options.rawValue)
            && conditions.allSatisfy { $0.fits(facts) }
    }

    /// Whether method and path match; other members are ignored.
    func names(_ method: Method, _ path: ArraySlice<UInt8>) -> Bool {
        (match.method == nil || match.method == method.rawValue)
            && (match.path == nil || pattern?.matches(path) ?? false)
    }

    func mismatches(_ facts: ExchangeFacts) -> [Mismatch] { conditions.compactMap { $0.mismatch(facts) } }
}
