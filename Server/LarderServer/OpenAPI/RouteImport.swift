import LarderCoding
import LarderHTTP

/// Makes a file of routes, to be edited, from what exists: an OpenAPI description (JSON or YAML) or an HTTP archive (HAR).
package enum RouteImport {
    /// - Returns: a document for `--routes`, indented, and a sentence on what is not in it.
    /// - Throws: `FileError` for another document.
    package static func routes(from bytes: [UInt8], named name: String) throws(FileError)
        -> (document: [UInt8], omitted: String?)
    {
        let document: JSONValue
        do { document = try OpenAPIDocument.value(bytes, named: name) } catch {
            guard ["json", "yaml", "yml", "har"].contains(where: { name.hasSuffix("." + $0) }) else {
                throw FileError("\(name): is neither an OpenAPI description nor an HTTP archive: \(error)")
            }
            throw error
        }
        let routes: [JSONValue]
        var omitted: String?
        if let paths = document["paths"]?.object {
            let description = OpenAPIDocument(root: document)
            try description.check(named: name)
            routes = OpenAPIRoutes(document: description).routes(paths)
        } else if let entries = document.value(at: "/log/entries")?.array {
            let archive = try ArchiveRoutes(entries, named: name)
            routes = archive.routes
            omitted = archive.omitted.map { "\(name): left out: \($0)" }
        } else {
            throw FileError(
                "\(name): is neither an OpenAPI description (`paths`) nor an HTTP archive (`log.entries`)"
            )
        }
        guard !routes.isEmpty else {
            let reason = omitted.map { "; " + $0 } ?? ""
            throw FileError("\(name): has no reply from which a route can be made\(reason)")
        }
        return (indented(routes), omitted)
    }

    /// One line for each route, so that the file is easy to edit.
    private static func indented(_ routes: [JSONValue]) -> [UInt8] {
        let lines = routes.map { "  " + String(decoding: $0.encoded, as: UTF8.self) }.joined(separator: ",\n")
        return Array("{\"routes\": [\n\(lines)\n]}\n".utf8)
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
