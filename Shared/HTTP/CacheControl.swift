/// What `Cache-Control` says, in a request or in a response (RFC 9111 §5.2).
///
/// Names are compared without case, arguments may be tokens or quoted strings. Of a directive that is repeated the first
/// counts (§4.2.1). What cannot be understood counts as the strictest that it could mean, and never as permission.
public struct CacheControl: Sendable, Hashable {
    /// One directive.
    public struct Directive: Sendable, Hashable {
        /// Its name in lower case.
        public let name: String
        /// Its argument without quotes; nil where it has none.
        public let argument: String?
        /// Whether the argument was a quoted string.
        public let isQuoted: Bool
    }

    /// What `no-cache` and `private` reach.
    public enum Scope: Sendable, Hashable {
        /// The directive is not there.
        case none
        /// These fields only.
        case fields([FieldName])
        /// The whole response.
        case all
    }

    /// How old beyond its freshness a response may be for a request.
    public enum MaxStale: Sendable, Hashable {
        /// As old as it likes.
        case any
        /// So many seconds at most.
        case seconds(Int64)
    }

    /// The directives in order, repeats and unknown ones among them.
    public let directives: [Directive]

    /// Reads the values of all `Cache-Control` field lines.
    public init(parsing values: [String]) {
        directives = values.flatMap(FieldList.members).compactMap(Self.directive)
    }

    /// Reads the `Cache-Control` of a response.
    public init(response fields: Fields) { self.init(parsing: fields.values(of: .cacheControl)) }

    /// Reads the `Cache-Control` of a request. Where there is none, `Pragma: no-cache` stands for `no-cache` (§5.4).
    public init(request fields: Fields) {
        let values = fields.values(of: .cacheControl)
        let isPragma = values.isEmpty && CacheControl(parsing: fields.values(of: .pragma)).contains("no-cache")
        self.init(parsing: isPragma ? ["no-cache"] : values)
    }

    private static func directive(_ member: String) -> Directive? {
        // Inside a name there is no quote: the first = ends it.
        let sides = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = FieldList.trimmed(sides[0]).lowercased()
        guard !name.isEmpty else { return nil }
        guard sides.count == 2 else { return Directive(name: name, argument: nil, isQuoted: false) }
        // Space around the = is kept, so that the argument is none that could be understood.
        let hasSpace = sides[0].utf8.last.map { $0 == 0x20 || $0 == 0x09 } ?? false
        let argument = String(sides[1])
        let isQuoted = argument.utf8.count >= 2 && argument.hasPrefix("\"") && argument.hasSuffix("\"")
        let text = isQuoted ? FieldList.unquoted(argument) : argument
        return Directive(name: name, argument: hasSpace ? " " + text : text, isQuoted: isQuoted)
    }

    /// Whether a directive is there, with or without an argument.
    public func contains(_ name: String) -> Bool { directives.contains { $0.name == name } }

    /// The first directive of a name.
    public func first(_ name: String) -> Directive? { directives.first { $0.name == name } }

    /// The seconds of the first directive of a name: nil where it is not there, `malformed` where it is no number.
    public func seconds(_ name: String, malformed: Int64 = 0) -> Int64? {
        guard let directive = first(name) else { return nil }
        return directive.argument.flatMap { DeltaSeconds.parse($0) } ?? malformed
    }

    // MARK: Both

    /// `no-store`, with any argument (§5.2.1.5, §5.2.2.5).
    public var noStore: Bool { contains("no-store") }

    /// `max-age` in seconds; one that is no number counts as 0 (§5.2.1.1, §5.2.2.1).
    public var maxAge: Int64? { seconds("max-age") }

    /// `stale-if-error` in seconds (RFC 5861 §4).
    public var staleIfError: Int64? { seconds("stale-if-error") }

    /// `no-cache`: of a request it reaches everything; of a response what it says (§5.2.1.4, §5.2.2.4).
    public var noCache: Scope { scope("no-cache") }

    // MARK: Requests

    /// `max-stale` (§5.2.1.2). One that is no number allows nothing.
    public var maxStale: MaxStale? {
        guard let directive = first("max-stale") else { return nil }
        guard let argument = directive.argument else { return .any }
        return DeltaSeconds.parse(argument).map { .seconds($0) }
    }

    /// `min-fresh` in seconds (§5.2.1.3). One that is no number can never be satisfied.
    public var minFresh: Int64? { seconds("min-fresh", malformed: DeltaSeconds.maximum) }

    /// `only-if-cached` (§5.2.1.7).
    public var onlyIfCached: Bool { contains("only-if-cached") }

    // MARK: Responses

    /// `must-revalidate` (§5.2.2.2).
    public var mustRevalidate: Bool { contains("must-revalidate") }

    /// `must-understand` (§5.2.2.3).
    public var mustUnderstand: Bool { contains("must-understand") }

    /// `public` (§5.2.2.9).
    public var isPublic: Bool { contains("public") }

    /// `private` (§5.2.2.7). It binds shared caches.
    public var privateScope: Scope { scope("private") }

    /// `immutable` (RFC 8246).
    public var isImmutable: Bool { contains("immutable") }

    /// `stale-while-revalidate` in seconds (RFC 5861 §3).
    public var staleWhileRevalidate: Int64? { seconds("stale-while-revalidate") }

    /// The directive's reach: all unless every occurrence names fields in a quoted string. Many write it as a token or with
    /// names that are none; to validate once more than needed does no harm.
    private func scope(_ name: String) -> Scope {
        let found = directives.filter { $0.name == name }
        guard !found.isEmpty else { return .none }
        var fields: [FieldName] = []
        for directive in found {
            guard directive.isQuoted, let argument = directive.argument else { return .all }
            let names = FieldList.members(of: argument)
            let valid = names.compactMap { FieldName($0) }
            guard !valid.isEmpty, valid.count == names.count else { return .all }
            fields += valid
        }
        return .fields(fields)
    }
}
