import LarderCoding
import LarderHTTP

/// The OpenAPI 3.1 description of a world's collections. Schemas follow from the first documents.
enum CollectionDescription {
    private static let samples = 100

    static func representation(_ store: Store) throws -> Representation {
        var (paths, schemas) = (JSONObject(), JSONObject())
        for name in try store.documents.collections() {
            let isSingular = try store.documents.isSingular(name)
            paths["/\(name)"] = isSingular ? singularPath(name) : listPath(name)
            if !isSingular { paths["/\(name)/{id}"] = documentPath(name) }
            let documents = try store.documents.documents(name, limit: samples).map {
                try JSONParser.parse($0.json)
            }
            schemas[name] = schema(documents)
        }
        paths["/changes"] = object([
            "get": operation(
                "All changes after a token",
                "200",
                parameters: [query("since", "string"), query("limit", "integer")]
            )
        ])
        paths["/live"] = object(["get": operation("Changes as server-sent events, or over a WebSocket", "200")])
        schemas["Problem"] = object(["type": .string("object"), "description": .string("RFC 9457")])
        let root = object([
            "openapi": .string("3.1.0"),
            "info": object(["title": .string("Collections"), "version": .string("1")]),
            "paths": .object(paths),
            "components": object(["schemas": .object(schemas)]),
        ])
        return Representation(
            body: DocumentJSON.encode(root),
            cacheControl: CachePolicy.revalidate
        )
    }

    private static func listPath(_ name: String) -> JSONValue {
        let array = object(["type": .string("array"), "items": reference(name)])
        let parameters =
            ["_page", "_limit", "_per_page", "_start", "_end", "limit"].map { query($0, "integer") }
            + ["_sort", "_order", "_embed", "_where", "q", "cursor"].map { query($0, "string") }
        return object([
            "get": operation("A list of \(name); fields are filters", "200", array, parameters: parameters),
            "post": operation("Creates one of \(name)", "201", reference(name), body: reference(name)),
        ])
    }

    private static func singularPath(_ name: String) -> JSONValue {
        object([
            "get": operation("The \(name)", "200", reference(name)),
            "put": operation("Replaces it", "200", reference(name), body: reference(name)),
            "patch": operation("Changes it with a merge patch", "200", reference(name), body: reference(name)),
        ])
    }

    private static func documentPath(_ name: String) -> JSONValue {
        let id = object([
            "name": .string("id"), "in": .string("path"), "required": .bool(true),
            "schema": object(["type": .string("string")]),
        ])
        return object([
            "parameters": .array([id]),
            "get": operation("One of \(name)", "200", reference(name)),
            "put": operation("Replaces it", "200", reference(name), body: reference(name)),
            "patch": operation(
                "Changes it with a merge patch",
                "200",
                reference(name),
                body: object(["type": .string("object")])
            ),
            "delete": operation("Deletes it", "204"),
        ])
    }

    private static func operation(
        _ summary: String,
        _ status: String,
        _ schema: JSONValue? = nil,
        body: JSONValue? = nil,
        parameters: [JSONValue] = []
    ) -> JSONValue {
        var success = object(["description": .string(summary)]).object ?? JSONObject()
        if let schema { success["content"] = content("application/json", schema) }
        let problem = object([
            "description": .string("A problem"),
            "content": content("application/problem+json", reference("Problem")),
        ])
        var members = JSONObject()
        members["summary"] = .string(summary)
        if !parameters.isEmpty { members["parameters"] = .array(parameters) }
        if let body {
            members["requestBody"] = object(["required": .bool(true), "content": content("application/json", body)])
        }
        members["responses"] = object([status: .object(success), "default": problem])
        return .object(members)
    }

    private static func content(_ mediaType: String, _ schema: JSONValue) -> JSONValue {
        object([mediaType: object(["schema": schema])])
    }

    private static func query(_ name: String, _ type: String) -> JSONValue {
        object(["name": .string(name), "in": .string("query"), "schema": object(["type": .string(type)])])
    }

    private static func reference(_ name: String) -> JSONValue {
        object(["$ref": .string("#/components/schemas/\(name)")])
    }

    /// The members of the documents with the types that they have.
    ///
    /// - Complexity: O(members of all documents).
    static func schema(_ documents: [JSONValue]) -> JSONValue {
        var found: [(name: String, types: [String])] = []
        var indices: [String: Int] = [:]
        for document in documents {
            for member in document.object?.members ?? [] {
                let type = type(of: member.value)
                if let index = indices[member.name] {
                    if !found[index].types.contains(type) { found[index].types.append(type) }
                } else {
                    indices[member.name] = found.count
                    found.append((member.name, [type]))
                }
            }
        }
        let properties = found.map { name, types in
            let type: JSONValue = types.count == 1 ? .string(types[0]) : .array(types.map { .string($0) })
            return JSONObject.Member(name: name, value: object(["type": type]))
        }
        return object(["type": .string("object"), "properties": .object(JSONObject(properties))])
    }

    private static func type(of value: JSONValue) -> String {
        switch value {
        case .null: "null"
        case .bool: "boolean"
        case .integer: "integer"
        case .number: "number"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        }
    }

    private static func object(_ members: KeyValuePairs<String, JSONValue>) -> JSONValue {
        .object(JSONObject(members.map { JSONObject.Member(name: $0.key, value: $0.value) }))
    }
}
