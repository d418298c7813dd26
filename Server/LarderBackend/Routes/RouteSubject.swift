import LarderCoding
import LarderEngine
import LarderHTTP

/// A part of a request, or a state, that conditions and templates name: `path.id`, `query.q`, `field.accept`, `body`, `body.user.name`,
/// `state.cart`.
enum RouteSubject: Sendable {
    case path(String)
    case query(String)
    case field(FieldName)
    case body(JSONPath?)
    case state(String)

    static let names = ["path", "query", "field", "body", "state"]

    /// Nil for other text.
    init?(_ text: String) {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).map { String($0) }
        if text == "body" || text.hasPrefix("body[") {
            self = .body(text == "body" ? nil : JSONPath(text.dropFirst(4)))
            return
        }
        guard parts.count == 2, !parts[1].isEmpty else { return nil }
        switch parts[0] {
        case "path": self = .path(parts[1])
        case "query": self = .query(parts[1])
        case "field": if let name = FieldName(parts[1]) { self = .field(name) } else { return nil }
        case "body": if let path = JSONPath(parts[1]) { self = .body(path) } else { return nil }
        case "state": self = .state(parts[1])
        default: return nil
        }
    }

    /// The values: none if the request has no such part, several for a repeated parameter or a path with `*`.
    func values(_ call: RouteCall) throws -> [JSONValue] {
        switch self {
        case .path(let name): call.path[name].map { [.string($0)] } ?? []
        case .query(let name): call.query.items.filter { $0.name == name }.map { .string($0.value) }
        case .field(let name): call.request.fields.combined(name).map { [.string($0)] } ?? []
        case .body(nil):
            call.body == .null ? [.string(String(decoding: call.request.body, as: UTF8.self))] : [call.body]
        case .body(let path?): path.values(in: call.body)
        case .state(let name): try call.state(name).map { [.string($0)] } ?? []
        }
    }
}

/// A condition on a part of a request.
struct RouteCondition: Sendable {
    enum Test: Sendable {
        /// The value, or for a part of the request that is text the text that the value is written as.
        case equals(JSONValue)
        case matches(TextPattern)
        case exists(Bool)
    }

    let subject: RouteSubject
    let test: Test

    func holds(_ call: RouteCall) throws -> Bool {
        let values = try subject.values(call)
        return switch test {
        case .exists(let expected): values.isEmpty != expected
        case .matches(let pattern): values.contains { pattern.matches($0.text) }
        case .equals(let expected):
            values.contains { value in
                value.sorted == expected.sorted || value.string.map { DocumentJSON.isEqual(expected, to: $0) } ?? false
            }
        }
    }
}
