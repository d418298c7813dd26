/// The directives of `Cache-Control` in a request or a response (RFC 9111 §5.2).
///
/// Names are case-insensitive, arguments may be tokens or quoted strings. The first of several equal directives counts
/// (§4.2.1). An invalid directive gets its strictest interpretation and never grants permission.
package struct CacheControl: Sendable, Hashable {
    package struct Directive: Sendable, Hashable {
        /// Its name in lower case.
        package let name: String
        /// Its argument without quotes; nil where it has none.
        package let argument: String?
        /// Whether the argument was a quoted string.
        package let isQuoted: Bool
    }

    /// The scope of `no-cache` and `private`.
    package enum Scope: Sendable, Hashable {
        /// The directive is missing.
        case none
        /// These fields only.
        case fields([FieldName])
        /// The whole response.
        case all
    }

    /// The accepted staleness (`max-stale`).
    package enum MaxStale: Sendable, Hashable {
        case any
        case seconds(Int64)
    }

    /// The directives in order, including repeated and unknown ones.
    package let directives: [Directive]

    /// Parses the values of all `Cache-Control` field lines.
    package init(parsing values: [String]) {
        directives = values.flatMap(FieldList.members).compactMap(Self.directive)
    }

    package init(response fields: Fields) { self.init(parsing: fields.values(of: .cacheControl)) }

    /// Parses the `Cache-Control` of a request. Without one `Pragma: no-cache` means `no-cache` (§5.4).
    package init(request fields: Fields) {
        let values = fields.values(of: .cacheControl)
        let isPragma = values.isEmpty && CacheControl(parsing: fields.values(of: .pragma)).contains("no-cache")
        self.init(parsing: isPragma ? ["no-cache"] : values)
    }

    private static func directive(_ member: String) -> Directive? {
        // A name contains no quote, so the first = ends it.
        let sides = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = FieldList.trimmed(sides[0]).lowercased()
        guard !name.isEmpty else { return nil }
        guard sides.count == 2 else { return Directive(name: name, argument: nil, isQuoted: false) }
        // Space around the = is kept, which makes the argument invalid.
        let hasSpace = sides[0].utf8.last.map { $0 == 0x20 || $0 == 0x09 } ?? false
        let argument = String(sides[1])
        let isQuoted = argument.utf8.count >= 2 && argument.hasPrefix("\"") && argument.hasSuffix("\"")
        let text = isQuoted ? FieldList.unquoted(argument) : argument
        return Directive(name: name, argument: hasSpace ? " " + text : text, isQuoted: isQuoted)
    }

    /// Whether a directive exists, with or without an argument.
    package func contains(_ name: String) -> Bool { directives.contains { $0.name == name } }

    package func first(_ name: String) -> Directive? { directives.first { $0.name == name } }

    /// Returns the seconds of the first directive with a name; nil if it is missing, `malformed` if it is not a
    /// number.
    package func seconds(_ name: String, malformed: Int64 = 0) -> Int64? {
        guard let directive = first(name) else { return nil }
        return directive.argument.flatMap { DeltaSeconds.parse($0) } ?? malformed
    }

    // MARK: Both

    /// `no-store`, with any argument (§5.2.1.5, §5.2.2.5).
    package var noStore: Bool { contains("no-store") }

    /// `max-age` in seconds; an invalid one is 0 (§5.2.1.1, §5.2.2.1).
    package var maxAge: Int64? { seconds("max-age") }

    /// `stale-if-error` in seconds (RFC 5861 §4).
    package var staleIfError: Int64? { seconds("stale-if-error") }

    /// The scope of `no-cache`; in a request always everything (§5.2.1.4, §5.2.2.4).
    package var noCache: Scope { scope("no-cache") }

    // MARK: Requests

    /// `max-stale` (§5.2.1.2). An invalid one allows no staleness.
    package var maxStale: MaxStale? {
        guard let directive = first("max-stale") else { return nil }
        guard let argument = directive.argument else { return .any }
        return DeltaSeconds.parse(argument).map { .seconds($0) }
    }

    /// `min-fresh` in seconds (§5.2.1.3). An invalid one cannot be satisfied.
    package var minFresh: Int64? { seconds("min-fresh", malformed: DeltaSeconds.maximum) }

    /// `only-if-cached` (§5.2.1.7).
    package var onlyIfCached: Bool { contains("only-if-cached") }

    // MARK: Responses

    /// `must-revalidate` (§5.2.2.2).
    package var mustRevalidate: Bool { contains("must-revalidate") }

    /// `must-understand` (§5.2.2.3).
    package var mustUnderstand: Bool { contains("must-understand") }

    /// `public` (§5.2.2.9).
    package var isPublic: Bool { contains("public") }

    /// `private` (§5.2.2.7), which applies to shared caches.
    package var privateScope: Scope { scope("private") }

    /// `immutable` (RFC 8246).
    package var isImmutable: Bool { contains("immutable") }

    /// `stale-while-revalidate` in seconds (RFC 5861 §3).
    package var staleWhileRevalidate: Int64? { seconds("stale-while-revalidate") }

    /// The directive's scope: everything unless each occurrence lists fields in a quoted string. Some servers send
    /// invalid lists; a superfluous validation does no harm.
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
