import LarderCoding
import LarderEngine
import LarderHTTP

/// What an OpenAPI description says about requests and replies.
///
/// Each check returns its findings as sentences without values. OPTIONS, 304 and conditional failures are answered by servers whatever the
/// description says, and have no finding.
struct Contract: Sendable {
    /// Longer bodies are not checked: this runs on the loop of the connection.
    static let bodyBytesMaximum = 1 << 20

    struct Operation: Sendable {
        let method: String
        let path: PathTemplate
        let parameters: [JSONValue]
        let body: JSONValue?
        let replies: JSONObject
    }

    private static let methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"]

    private let document: OpenAPIDocument
    let operations: [Operation]
    /// The paths of the servers, without a last slash.
    private let basePaths: [String]
    /// Patterns that are not checked, with the reason.
    let warnings: [String]

    /// - Throws: `FileError` for a document without paths.
    init(_ document: OpenAPIDocument, named name: String) throws(FileError) {
        try document.check(named: name)
        guard let paths = document.root["paths"]?.object, !paths.members.isEmpty else {
            throw FileError("\(name): is not an OpenAPI description with `paths`")
        }
        self.document = document
        func parameters(_ value: JSONValue) -> [JSONValue] {
            value["parameters"]?.array?.map { document.resolved($0) } ?? []
        }
        operations = paths.members.flatMap { path -> [Operation] in
            let item = document.resolved(path.value)
            guard let template = PathTemplate(path.name) else { return [] }
            return (item.object?.members ?? []).filter { Self.methods.contains($0.name) }.map { member in
                let (own, shared) = (parameters(member.value), parameters(item))
                return Operation(
                    method: member.name.uppercased(),
                    path: template,
                    parameters: own
                        + shared.filter { old in
                            !own.contains { $0["name"] == old["name"] && $0["in"] == old["in"] }
                        },
                    body: member.value["requestBody"].map { document.resolved($0) },
                    replies: member.value["responses"]?.object ?? JSONObject()
                )
            }
        }
        basePaths = document.basePaths
        warnings =
            Self.unsupportedPatterns(document.root)
            + paths.members.filter { PathTemplate($0.name) == nil }.map { "the path \($0.name) is not checked" }
    }

    private static func unsupportedPatterns(_ value: JSONValue) -> [String] {
        switch value {
        case .array(let elements): return elements.flatMap { unsupportedPatterns($0) }
        case .object(let object):
            return object.members.flatMap { member -> [String] in
                guard member.name == "pattern", let text = member.value.string else {
                    return unsupportedPatterns(member.value)
                }
                do {
                    _ = try TextPattern(text)
                    return []
                } catch { return ["the pattern \(text) is not checked: \(error)"] }
            }
        default: return []
        }
    }

    // MARK: Requests

    /// The operation of a request with the values of its path, or why there is none.
    struct Match {
        var operation: Operation?
        var values: [String: String] = [:]
        var finding: String?
    }

    func match(_ request: Request) -> Match {
        guard request.method != .options else { return Match() }
        let path = request.pathText
        // A server's path may be that of the address, or be left out by a proxy.
        let candidates =
            (basePaths.filter { !$0.isEmpty && path.hasPrefix($0 + "/") }.map { path.dropFirst($0.count) } + [path[...]])
        for candidate in candidates {
            guard let segments = PathTemplate.segments(Array(candidate.utf8)[...]) else { continue }
            let found = operations.compactMap { operation in
                operation.path.values(segments).map { (operation: operation, values: $0) }
            }
            guard let most = found.map(\.operation.path.literalCount).max() else { continue }
            // A literal segment comes before a parameter.
            let nearest = found.filter { $0.operation.path.literalCount == most }
            let method = request.method.rawValue
            let match =
                nearest.first { $0.operation.method == method }
                ?? nearest.first { method == "HEAD" && $0.operation.method == "GET" }
            if let match {
                let names = match.operation.path.names
                return Match(
                    operation: match.operation,
                    values: Dictionary(uniqueKeysWithValues: zip(names, match.values))
                )
            }
            let names = nearest.map(\.operation.method).joined(separator: ", ")
            return Match(finding: "request: the path takes \(names), not \(method)")
        }
        return Match(finding: "request: the path is not described")
    }

    func findings(_ request: Request, _ match: Match) -> [String] {
        guard let operation = match.operation else { return match.finding.map { [$0] } ?? [] }
        var findings: [String] = []
        let query = QueryString(parsing: Array(request.query ?? []))
        for parameter in operation.parameters {
            guard let name = parameter["name"]?.string, let place = parameter["in"]?.string else { continue }
            let texts: [String]
            switch place {
            case "query": texts = query?.items.filter { $0.name == name }.map(\.value) ?? []
            case "path": texts = match.values[name].map { [$0] } ?? []
            case "header":
                // These are described elsewhere (OpenAPI 3.1 §4.8.12).
                if ["accept", "content-type", "authorization"].contains(name.lowercased()) { continue }
                texts = FieldName(name).flatMap { request.fields.combined($0) }.map { [$0] } ?? []
            default:
                let pairs = request.fields.combined(.cookie)?.split(separator: ";").map { $0.drop { $0 == " " } } ?? []
                texts = pairs.filter { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
            }
            let what = "the \(place) parameter `\(name)`"
            if texts.isEmpty {
                if parameter["required"] == .bool(true) { findings.append("\(what) is missing") }
            } else if let schema = parameter["schema"].map({ document.resolved($0) }) {
                var check = JSONSchema(document, .request)
                for text in typed(texts, schema) { check.check(text, schema, at: what) }
                findings += check.findings
            }
        }
        if let body = operation.body {
            if request.body.isEmpty {
                if body["required"] == .bool(true) { findings.append("the body is missing") }
            } else if request.fields.combined(.contentEncoding) == nil {
                findings += self.findings(
                    request.body,
                    request.fields.combined(.contentType),
                    body["content"]?.object ?? JSONObject(),
                    .request
                )
            }
        }
        return findings.map { "request: " + $0 }
    }

    /// The texts of a parameter as the types of its schema. Objects are not read.
    private func typed(_ texts: [String], _ schema: JSONValue) -> [JSONValue] {
        let types = schema.schemaTypes
        if types.contains("object") { return [] }
        if types.contains("array") {
            let items = schema["items"].map { document.resolved($0) } ?? .null
            let parts = texts.count == 1 ? texts[0].split(separator: ",").map { String($0) } : texts
            return [.array(parts.flatMap { typed([$0], items) })]
        }
        return texts.map { text in
            if types.contains("integer") || types.contains("number"),
                let value = try? JSONParser.parse(Array(text.utf8)), value.double != nil
            {
                return value
            }
            if types.contains("boolean"), text == "true" || text == "false" { return .bool(text == "true") }
            return .string(text)
        }
    }

    // MARK: Replies

    func findings(_ reply: Reply, to request: Request, _ operation: Operation) -> [String] {
        var head = reply.head
        let body: [UInt8]?
        switch reply.body {
        case .bytes(let bytes): body = bytes
        case .webSocket: (head, body) = (ReplyHead(.switchingProtocols), nil)
        case .eventStream, .tunnel: body = nil
        }
        let code = head.status.code
        guard ![304, 412, 416].contains(code) else { return [] }
        let names = [String(code), "\(code / 100)XX", "\(code / 100)xx", "default"]
        guard let described = names.lazy.compactMap({ operation.replies[$0] }).first.map({ document.resolved($0) })
        else {
            let known = operation.replies.members.map(\.name).joined(separator: ", ")
            return ["reply \(code): the status is not described; the operation has \(known)"]
        }
        var findings: [String] = []
        for field in described["headers"]?.object?.members ?? []
        where document.resolved(field.value)["required"] == .bool(true) && head[field.name] == nil {
            findings.append("the field `\(field.name)` is missing")
        }
        let isEmpty = body?.isEmpty ?? false
        if request.method != .head, !head.status.hasNoContent {
            let content = described["content"]?.object ?? JSONObject()
            if !isEmpty, content.members.isEmpty {
                findings.append("a body is not described")
            } else if isEmpty, !content.members.isEmpty {
                findings.append("the body is missing")
            } else if !isEmpty {
                findings += self.findings(body, head["content-type"], content, .reply)
            }
        }
        return findings.map { "reply \(code): " + $0 }
    }

    // MARK: Bodies

    /// - Parameter body: nil if only the type is checked.
    private func findings(
        _ body: [UInt8]?,
        _ contentType: String?,
        _ content: JSONObject,
        _ direction: JSONSchema.Direction
    ) -> [String] {
        guard !content.members.isEmpty else { return [] }
        guard let type = contentType.flatMap({ MediaType(parsing: $0) })?.essence else {
            return ["Content-Type is missing or not a media type"]
        }
        let family = type.prefix { $0 != "/" } + "/*"
        let described = { (name: String) in
            content.members.first { (MediaType(parsing: $0.name)?.essence ?? $0.name) == name }
        }
        guard let media = described(type) ?? described(String(family)) ?? described("*/*") else {
            let names = content.members.map(\.name).joined(separator: ", ")
            return ["the content type \(type) is not described; it has \(names)"]
        }
        guard type == "application/json" || type.hasSuffix("+json"), let body, body.count <= Self.bodyBytesMaximum,
            let schema = media.value["schema"]
        else { return [] }
        do throws(JSONError) {
            var check = JSONSchema(document, direction)
            check.check(try JSONParser.parse(body), schema, at: "")
            return check.findings
        } catch { return ["the body is not JSON: \(error.reason)"] }
    }
}
