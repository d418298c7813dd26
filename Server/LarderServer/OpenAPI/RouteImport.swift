import LarderCoding
import LarderHTTP

/// Makes a file of routes, to be edited, from what exists: an OpenAPI description (JSON or YAML) or an HTTP archive (HAR).
package enum RouteImport {
    /// - Returns: a document for `--routes`, indented.
    /// - Throws: `FileError` for another document.
    package static func routes(from bytes: [UInt8], named name: String) throws(FileError) -> [UInt8] {
        let document = try OpenAPIDocument.value(bytes, named: name)
        let routes: [JSONValue]
        if let paths = document["paths"]?.object {
            let description = OpenAPIDocument(root: document)
            try description.check(named: name)
            routes = OpenAPIRoutes(document: description).routes(paths)
        } else if let entries = document.value(at: "/log/entries")?.array {
            routes = archived(entries)
        } else {
            throw FileError(
                "\(name): is neither an OpenAPI description (`paths`) nor an HTTP archive (`log.entries`)"
            )
        }
        guard !routes.isEmpty else {
            throw FileError("\(name): has no reply from which a route can be made")
        }
        return indented(routes)
    }

    /// One line for each route, so that the file is easy to edit.
    private static func indented(_ routes: [JSONValue]) -> [UInt8] {
        let lines = routes.map { "  " + String(decoding: $0.encoded, as: UTF8.self) }.joined(separator: ",\n")
        return Array("{\"routes\": [\n\(lines)\n]}\n".utf8)
    }

    // MARK: Archives

    /// Routes with more conditions are asked first: without a query a route takes every request for its path.
    private static func archived(_ entries: [JSONValue]) -> [JSONValue] {
        var known: Set<String> = []
        let routes = entries.compactMap { entry -> JSONValue? in
            guard let method = entry.value(at: "/request/method")?.string, method != "OPTIONS",
                let url = entry.value(at: "/request/url")?.string.flatMap({ HTTPURL($0) }),
                let path = literal(path: url.path),
                let status = entry.value(at: "/response/status")?.integer, (200...599).contains(status), status != 304,
                known.insert(method + " " + url.target).inserted
            else { return nil }
            var when = JSONObject()
            let query = url.query.flatMap { QueryString(parsing: Array($0.utf8)) }
            for item in query?.items ?? [] { when["query." + item.name] = .string(item.value) }
            let type = entry.value(at: "/response/content/mimeType")?.string
            var route: [(String, JSONValue?)] = [
                ("method", .string(method)), ("path", .string(path)),
                ("when", when.members.isEmpty ? nil : .object(when)), ("status", .integer(status)),
            ]
            if let location = entry.value(at: "/response/headers")?.array?
                .first(where: { $0["name"]?.string?.lowercased() == "location" })?["value"]
            {
                route.append(("fields", .members(["Location": literal(location)])))
            }
            // What is not text is in base64.
            if let text = entry.value(at: "/response/content/text")?.string,
                entry.value(at: "/response/content/encoding")?.string != "base64", !text.isEmpty
            {
                let json = (type ?? "").contains("json") ? try? JSONParser.parse(Array(text.utf8)) : nil
                if let json {
                    route.append(("json", literal(json)))
                } else {
                    route.append(("mediaType", type.map { .string($0) }))
                    route.append(("text", literal(.string(text))))
                }
            }
            return .members(route)
        }
        func count(_ route: JSONValue) -> Int { route["when"]?.object?.members.count ?? 0 }
        // Stable: of equally many conditions the earlier one comes first.
        return routes.sorted { count($0) > count($1) }
    }

    /// A path as a template that is this path alone; nil if it has what a template reads as a parameter.
    private static func literal(path: String) -> String? {
        let path = path.isEmpty ? "/" : path
        guard let decoded = QueryString.percentDecoded(Array(path.utf8)),
            !decoded.contains(where: { "{}*?#".contains($0) })
        else { return nil }
        return decoded
    }

    /// A value as a template whose texts are these texts.
    private static func literal(_ value: JSONValue) -> JSONValue {
        func text(_ text: String) -> String { text.replacing("{{", with: "{{pick \"{{\"}}") }
        switch value {
        case .string(let string): return .string(text(string))
        case .array(let values): return .array(values.map(literal))
        case .object(let object):
            return .members(object.members.map { (text($0.name), literal($0.value)) })
        default: return value
        }
    }
}

/// Routes from an OpenAPI description: the first successful reply of each operation, from its example or its schema.
private struct OpenAPIRoutes {
    let document: OpenAPIDocument

    func routes(_ paths: JSONObject) -> [JSONValue] {
        let methods = ["get", "post", "put", "patch", "delete", "head"]
        let base = document.basePaths.first ?? ""
        let all = paths.members.flatMap { path in
            (path.value.object?.members ?? []).filter { methods.contains($0.name) }.compactMap { operation in
                route(operation.name.uppercased(), base + path.name, operation.value)
            }
        }
        // A literal path is asked before one with parameters.
        return all.filter { !($0["path"]?.string?.contains("{") ?? false) }
            + all.filter { $0["path"]?.string?.contains("{") ?? false }
    }

    private func route(_ method: String, _ path: String, _ operation: JSONValue) -> JSONValue? {
        let replies = operation["responses"]?.object?.members ?? []
        guard let reply = replies.first(where: { $0.name.hasPrefix("2") }) ?? replies.first else { return nil }
        let status = Int64(reply.name.replacing("X", with: "0")) ?? 200
        let content = document.resolved(reply.value)["content"]?.object?.members ?? []
        let media = content.first { $0.name.contains("json") } ?? content.first
        var members: [(String, JSONValue?)] = [
            ("method", .string(method)), ("path", .string(path)),
            ("status", .integer((200...599).contains(status) ? status : 200)),
        ]
        if let media, status != 204 {
            let value =
                example(media.value) ?? media.value["schema"].map { SchemaSample(document: document).value($0) }
                ?? .null
            if media.name.contains("json") {
                if media.name != "application/json" { members.append(("mediaType", .string(media.name))) }
                members.append(("json", value))
            } else {
                members += [("mediaType", .string(media.name)), ("text", .string(value.string ?? ""))]
            }
        }
        return JSONValue.members(members)
    }

    private func example(_ media: JSONValue) -> JSONValue? {
        media["example"] ?? media["examples"]?.object?.members.first.flatMap { document.resolved($0.value)["value"] }
    }
}
