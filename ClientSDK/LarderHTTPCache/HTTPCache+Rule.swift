public import LarderHTTP

extension HTTPCache {
    /// Rewrites fields of matching responses before the cache reads them.
    ///
    /// All matching rules apply in order. Callers see the rewritten fields.
    public struct Rule: Sendable, Hashable {
        /// The host in lower case, with the port unless it is the default: `api.example.com`; nil: any.
        public var host: String?
        /// A prefix of complete path segments: `/v1/feed` matches `/v1/feed` and `/v1/feed/pages`, not `/v1/feeds`.
        /// Empty: any.
        public var pathPrefix: String
        /// The methods; empty: any.
        public var methods: Set<Method>
        /// Fields to set. A `Cache-Control` is treated like the server's: `no-store` forbids storing.
        public var settingFields = Fields()
        /// Fields to remove.
        public var removingFields: [FieldName] = []
        /// The lifetime of successful responses from their receipt. It replaces `Cache-Control`, `Expires` and `Age`,
        /// except `no-store` and `immutable`.
        public var lifetime: Duration?
        /// The media types of valid responses, such as `application/json` or `image/*`. Others, such as a captive
        /// portal's page, are not stored and do not count as the server's answer. Empty: any.
        public var contentTypes: [String] = []

        /// Creates a rule without effects.
        public init(host: String? = nil, pathPrefix: String = "", methods: Set<Method> = []) {
            self.host = host
            self.pathPrefix = pathPrefix
            self.methods = methods
        }

        func matches(_ method: Method, _ url: HTTPURL) -> Bool {
            guard host.map({ $0.lowercased() == url.authority }) ?? true, methods.isEmpty || methods.contains(method)
            else {
                return false
            }
            guard url.path.utf8.starts(with: pathPrefix.utf8) else { return false }
            let rest = url.path.utf8.dropFirst(pathPrefix.utf8.count)
            return pathPrefix.isEmpty || pathPrefix.hasSuffix("/") || rest.isEmpty || rest.first == UInt8(ascii: "/")
        }

        /// Applies the rule to the fields.
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
            // The lifetime counts from the receipt, which is used as the date.
            fields.remove(.date)
            fields.set(.cacheControl, words.joined(separator: ", "))
        }

        /// Whether the response has one of the rule's media types.
        func accepts(_ status: Status, _ fields: Fields) -> Bool {
            guard !contentTypes.isEmpty, (200..<300).contains(status.code), !status.hasNoContent else { return true }
            guard let type = fields[.contentType].flatMap({ MediaType(parsing: $0) })?.essence else { return false }
            return contentTypes.contains { wanted in
                let wanted = wanted.lowercased()
                return wanted == type || (wanted.hasSuffix("/*") && type.hasPrefix(wanted.dropLast()))
            }
        }
    }
}
