import LarderCoding
import LarderHTTP

/// Masks secrets in output.
enum Secrets {
    private static let fields: Set<String> = [
        "authorization", "cookie", "set-cookie", "proxy-authorization", "x-api-key", "api-key", "x-auth-token",
        "x-csrf-token",
    ]
    /// In lower case, without `_` and `-`: other servers spell them in their own way.
    private static let names: Set<String> = [
        "password", "passwd", "accesstoken", "refreshtoken", "idtoken", "token", "clientsecret", "secret", "apikey",
    ]

    private static func isSecret(_ name: String) -> Bool {
        names.contains(name.lowercased().filter { $0 != "_" && $0 != "-" })
    }

    static func masked(field name: String, _ value: String) -> String {
        guard fields.contains(name.lowercased()) else { return value }
        let scheme = value.split(separator: " ", maxSplits: 1)
        return scheme.count == 2 ? "\(scheme[0]) ••••" : "••••"
    }

    /// Masks a request's target, or a line that ends with one.
    static func masked(target: String) -> String {
        guard let mark = target.firstIndex(of: "?") else { return target }
        return target[...mark] + masked(query: String(target[target.index(after: mark)...]))
    }

    static func masked(query: String) -> String {
        // The name may be percent-encoded.
        query.split(separator: "&", omittingEmptySubsequences: false).map { item in
            let name = item.utf8.prefix { $0 != UInt8(ascii: "=") }
            guard name.count < item.utf8.count,
                let decoded = QueryString.percentDecoded(Array(name), plusIsSpace: true), isSecret(decoded)
            else { return String(item) }
            return "\(Substring(name))=••••"
        }.joined(separator: "&")
    }

    static func masked(body: [UInt8]) -> JSONValue {
        guard let value = try? JSONParser.parse(body) else { return .string(masked(malformed: body)) }
        return masked(value)
    }

    /// The body as text; unchanged if it contains no secret.
    static func masked(text body: [UInt8]) -> String {
        guard let value = try? JSONParser.parse(body) else { return masked(malformed: body) }
        let shown = masked(value)
        return String(decoding: shown == value ? body : shown.encoded, as: UTF8.self)
    }

    /// A body that is not JSON is masked entirely if it names a secret in quotes, whose bounds are unknown; a form, its values.
    private static func masked(malformed body: [UInt8]) -> String {
        guard let text = String(validating: body, as: UTF8.self) else { return "\(body.count) bytes" }
        let plain = text.lowercased().filter { $0 != "_" && $0 != "-" }
        return names.contains { plain.contains("\"\($0)\"") } ? "••••" : masked(query: text)
    }

    private static func masked(_ value: JSONValue) -> JSONValue {
        switch value {
        case .object(let object):
            .members(object.members.map { ($0.name, isSecret($0.name) ? JSONValue.string("••••") : masked($0.value)) })
        case .array(let array): .array(array.map(masked))
        default: value
        }
    }
}
