public import LarderHTTP

/// Rewrites what servers say about some of their responses, before the cache looks at them.
///
/// All rules that match are applied, in order. Callers see the rewritten fields.
public struct HTTPCacheRule: Sendable, Hashable {
    /// The host in lower case, with its port if that is not the scheme's: `api.example.com`; nil for any.
    public var host: String?
    /// What the path begins with, whole segments only: `/v1/feed` reaches `/v1/feed` and `/v1/feed/pages`, not `/v1/feeds`.
    /// Empty for any.
    public var pathPrefix: String
    /// The methods; empty for any.
    public var methods: Set<Method>
    /// Fields that are set, in place of those of the same name. `Cache-Control` among them counts as the server's word.
    public var settingFields = Fields()
    /// Fields that are removed.
    public var removingFields: [FieldName] = []
    /// For how long successful responses are fresh from when they come, whatever the server said. It takes the place of `Cache-Control`,
    /// `Expires` and `Age`, but for `no-store`, which stays, and `immutable`.
    public var lifetime: Duration?
    /// Whether responses are kept out of the cache.
    public var forbidsStorage = false
    /// What successful responses with content must be: `application/json`, `image/*`. Others, such as the page of a network
    /// that wants one to sign in, are not stored and do not count as the server's answer; empty for anything.
    public var contentTypes: [String] = []

    /// A rule that does nothing yet.
    public init(host: String? = nil, pathPrefix: String = "", methods: Set<Method> = []) {
        self.host = host
        self.pathPrefix = pathPrefix
        self.methods = methods
    }

    func matches(_ method: Method, _ url: CacheURL) -> Bool {
        guard host.map({ $0.lowercased() == url.authority }) ?? true, methods.isEmpty || methods.contains(method) else {
            return false
        }
        guard url.path.utf8.starts(with: pathPrefix.utf8) else { return false }
        let rest = url.path.utf8.dropFirst(pathPrefix.utf8.count)
        return pathPrefix.isEmpty || pathPrefix.hasSuffix("/") || rest.isEmpty || rest.first == UInt8(ascii: "/")
    }

    /// The fields as the rule has them.
    func rewrite(_ status: Status, _ fields: inout Fields) {
        for name in removingFields { fields.remove(name) }
        var isReplaced: Set<FieldName> = []
        for field in settingFields {
            if isReplaced.insert(field.name).inserted { fields.remove(field.name) }
            fields.add(field.name, field.value)
        }
        guard let lifetime, (200..<400).contains(status.code) else { return }
        let directives = CacheControl(response: fields)
        var words = ["max-age=\(max(0, min(DeltaSeconds.maximum, lifetime.components.seconds)))"]
        if directives.isImmutable { words.append("immutable") }
        if directives.noStore { words.append("no-store") }
        fields.remove(.expires)
        fields.remove(.age)
        // Counted from when the response comes: the cache then takes that for its date.
        fields.remove(.date)
        fields.set(.cacheControl, words.joined(separator: ", "))
    }

    /// Whether a response is of a kind that the rule takes.
    func accepts(_ status: Status, _ fields: Fields) -> Bool {
        guard !contentTypes.isEmpty, (200..<300).contains(status.code), !status.hasNoContent else { return true }
        guard let type = fields[.contentType].flatMap({ MediaType(parsing: $0) })?.essence else { return false }
        return contentTypes.contains { wanted in
            let wanted = wanted.lowercased()
            return wanted == type || (wanted.hasSuffix("/*") && type.hasPrefix(wanted.dropLast()))
        }
    }
}
