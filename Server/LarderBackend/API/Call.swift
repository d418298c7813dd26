import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// One request to one world, as an operation sees it.
struct Call {
    let request: Request
    let exchange: Exchange
    /// Whose request it is, and what it changes.
    let owner: WorldExchange
    /// The values of the path template's parameters, in order.
    let parameters: [String]
    /// The caller's session; nil for an anonymous caller.
    let session: SessionRow?
    let query: QueryString
    /// What a cached reply is valid for; nil if the reply is not cached.
    private let version: ResponseCache.Version?
    /// Whether the reply depends on no credentials.
    private let isForEverybody: Bool

    /// - Throws: `unauthenticated` for a personal route, the problem of wrong credentials, or `invalid-parameter` for a malformed query.
    init(
        _ request: Request,
        _ exchange: Exchange,
        _ owner: WorldExchange,
        _ match: RouteMatch,
        _ version: ResponseCache.Version? = nil
    ) throws(Problem) {
        (self.request, self.exchange, self.owner, self.version) = (request, exchange, owner, version)
        parameters = match.parameters
        isForEverybody = match.route.authentication == .ignored
        session = try isForEverybody ? nil : owner.session(request)
        if match.route.authentication == .required, session == nil {
            throw ProblemType.unauthenticated(
                "\(match.route.template) is personal.",
                fields: Authenticator.challenge(nil)
            )
        }
        guard let query = QueryString(parsing: Array(request.query ?? [])) else {
            throw ProblemType.invalidParameter("The query is not valid percent-encoded UTF-8.")
        }
        self.query = query
    }

    var world: World { owner.world }

    /// The reply with a representation of the state that `read` sees, whole or as the request's conditions require. Stores the representation
    /// in the cache of replies if the request is a read of the present state.
    func reply(_ body: (Store) throws -> Representation) throws(Problem) -> Reply {
        let representation = try read(body)
        try Negotiation.requireJSON(request)
        if let version, representation.isReusable {
            world.cache.store(representation, of: session, for: version, isCommon: isForEverybody)
        }
        return representation.reply(to: request, now: world.clock.now)
    }

    // MARK: State

    /// Reads a consistent state: the present one, or an earlier one if the conditions ask for it.
    func read<Result: Sendable>(_ body: (Store) throws -> Result) throws(Problem) -> Result {
        guard let past = owner.deviations.past else { return try world.read(body) }
        return try world.readPast(upTo: past, body)
    }

    /// Changes the state in a transaction; the reply is sent after the commit.
    func write<Result: Sendable>(_ body: (Store, inout Commit) throws -> Result) throws(Problem) -> Result {
        let (result, number) = try world.commit(body)
        owner.commit = max(owner.commit, number)
        return result
    }

    /// The caller's row; 0 for an anonymous caller.
    var viewer: Int64 { session?.user ?? 0 }

    // MARK: Path and query

    /// The row that the first path parameter names.
    ///
    /// - Throws: `not-found` for text that cannot be an identifier of that kind.
    func row(_ kind: EntityKind) throws(Problem) -> Int64 {
        guard let id = EntityID(kind, parsing: parameters[0]) else {
            throw ProblemType.notFound("\(parameters[0]) is not the identifier of a \(kind.name).")
        }
        return id.row
    }

    /// A whole number in the query.
    func integer(_ name: StaticString, in range: ClosedRange<Int>) throws(Problem) -> Int? {
        guard let text = query.first(name.description) else { return nil }
        guard let value = Int(text), range.contains(value), text.utf8.first != UInt8(ascii: "+") else {
            throw invalid(name.description, "must be an integer from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    /// The requested page size.
    func limit(default standard: Int = 20, maximum: Int = 100) throws(Problem) -> Int {
        try integer("limit", in: 1...maximum) ?? standard
    }

    /// Where the page begins, from `after` or `before`.
    func pageStart(_ list: Cursor.List, owner: Int64 = 0) throws(Problem) -> PageStart {
        let (cursor, isBackward) = try sortedPageStart(list, owner: owner)
        return cursor.map { isBackward ? .before($0.row) : .after($0.row) } ?? .newest
    }

    /// Where the page of a sorted list begins, from `after` or `before`; no cursor is the beginning of the list.
    func sortedPageStart(
        _ list: Cursor.List,
        owner: Int64
    ) throws(Problem) -> (cursor: Cursor?, isBackward: Bool) {
        try rejectCursor()
        switch (query.first("after"), query.first("before")) {
        case (nil, nil): return (nil, false)
        case (let after?, nil): return (try cursor(after, "after", list, owner), false)
        case (nil, let before?): return (try cursor(before, "before", list, owner), true)
        case (_?, _?): throw invalid("before", "cannot be given together with `after`")
        }
    }

    /// The row behind which a page in ascending order begins, from `after`.
    func after(_ list: Cursor.List, owner: Int64 = 0) throws(Problem) -> Int64? {
        try rejectCursor()
        guard let text = query.first("after") else { return nil }
        return try cursor(text, "after", list, owner).row
    }

    /// Rejects a cursor under the name that other APIs use: without it the client would read the first page again and again.
    private func rejectCursor() throws(Problem) {
        if query.first("cursor") != nil { throw invalid("cursor", "is not the name: send `nextCursor` as `after`") }
    }

    private func cursor(_ text: String, _ name: String, _ list: Cursor.List, _ owner: Int64) throws(Problem) -> Cursor {
        guard let cursor = Cursor(parsing: text), cursor.list == list, cursor.owner == owner else {
            throw invalidCursor(name)
        }
        return cursor
    }

    func invalidCursor(_ name: String) -> Problem {
        ProblemType.invalidCursor("`\(name)` is not a cursor of this list.", at: name, "is not a cursor of this list")
    }

    func invalid(_ name: String, _ detail: String) -> Problem {
        ProblemType.invalidParameter("`\(name)` \(detail).", at: name, detail)
    }

    // MARK: Body

    /// The body as a JSON object.
    ///
    /// - Parameter other: A media type that is accepted besides `application/json`.
    func jsonObject(orMediaType other: StaticString? = nil) throws(Problem) -> JSONObject {
        if request.body.isEmpty, request.fields.range(of: "content-length") == nil,
            request.fields.range(of: "transfer-encoding") == nil
        {
            throw ProblemType.lengthRequired("The request has neither Content-Length nor Transfer-Encoding.")
        }
        guard let contentType = request.fields[.contentType] else {
            throw unsupportedMediaType("The request has no Content-Type.", other)
        }
        let mediaType = MediaType(parsing: contentType)
        let essence = mediaType?.essence
        guard essence == "application/json" || (other != nil && essence == other?.description) else {
            throw unsupportedMediaType("The body's Content-Type is \(contentType).", other)
        }
        if let charset = mediaType?.parameter("charset"), charset.lowercased() != "utf-8" {
            throw unsupportedMediaType("JSON must be UTF-8; the body's charset is \(charset).", other)
        }
        if let coding = request.fields[.contentEncoding], coding.lowercased() != "identity" {
            throw ProblemType.unsupportedMediaType(
                "The content coding \(coding) is not supported. Send the body without it.",
                fields: [.acceptEncoding: "identity"]
            )
        }
        return try JSONObject(body: request.body)
    }

    /// A 415 that names the accepted media types (RFC 9110 §15.5.16, RFC 5789 §3.1).
    private func unsupportedMediaType(_ detail: String, _ other: StaticString?) -> Problem {
        let taken = "application/json" + (other.map { ", \($0)" } ?? "")
        var fields: Fields = [.accept: taken]
        if request.method == .patch { fields.set(.acceptPatch, taken) }
        return ProblemType.unsupportedMediaType("\(detail) Send \(taken).", fields: fields)
    }

    // MARK: Conditions on writes

    /// Checks `If-Match` and `If-Unmodified-Since` against the current representation, inside the transaction of the edit.
    ///
    /// - Parameter isRequired: Whether an edit without `If-Match` is rejected.
    /// - Throws: `precondition-required`, or `precondition-failed` with the current version.
    func checkConditions(on current: Representation, version: Int64, isRequired: Bool) throws(Problem) {
        // An invalid date is ignored (RFC 9110 §13.1.4), so there is no condition then.
        let date = request.fields[.ifUnmodifiedSince].flatMap { HTTPDate.parse($0, now: world.clock.now) }
        if isRequired, request.fields[.ifMatch] == nil, date == nil {
            throw ProblemType.preconditionRequired("Send If-Match with the ETag that the edit is based on.")
        }
        let outcome = Preconditions(request).evaluate(
            method: request.method,
            exists: true,
            entityTag: current.entityTag,
            // The edit is based on the state, in whichever coding it was read.
            codings: ContentCoding.allCases,
            // A change in the current second has no date yet, so no earlier date can match it.
            lastModified: current.lastModified ?? WallTime(seconds: world.clock.now.seconds + 1),
            now: world.clock.now
        )
        guard outcome == .proceed else {
            var fields = Fields()
            fields.add(.etag, current.entityTag.description)
            var problem = ProblemType.preconditionFailed(
                "The condition does not hold for the current version \(version).",
                fields: fields
            )
            problem.extensions["currentVersion"] = .integer(version)
            throw problem
        }
    }
}

extension Call {
    /// The modification time of a resource that changed at `updated`, seen from now.
    func modification(_ updated: WallTime) -> Modification { Modification(at: updated, now: world.clock.now) }
}
