import LarderCoding

extension FaultKind {
    /// The description of the control plane with a schema for each action, and with the members of extended schemas.
    static func describing(in document: JSONValue) -> JSONValue {
        var schemas = document.value(at: "/components/schemas")?.object ?? JSONObject()
        var options: [JSONValue] = []
        var mapping: [JSONObject.Member] = []
        for kind in all {
            let schema = kind.name.prefix(1).uppercased() + kind.name.dropFirst() + "Action"
            let reference = JSONValue.string("#/components/schemas/\(schema)")
            schemas[schema] = kind.schema
            options.append(.members(["$ref": reference]))
            mapping.append(.init(name: kind.name, value: reference))
        }
        schemas["FaultAction"] = .members([
            "oneOf": .array(options),
            "discriminator": .members(["propertyName": .string("type"), "mapping": .object(JSONObject(mapping))]),
        ])
        // What extends a schema has its members too, before its own: `additionalProperties` excludes `allOf`.
        for member in schemas.members {
            guard let base = member.value["x-extends"]?.string, var schema = member.value.object else { continue }
            let inherited = schemas[base]?["properties"]?.object?.members ?? []
            schema["properties"] = .object(JSONObject(inherited + (schema["properties"]?.object?.members ?? [])))
            schema["x-extends"] = nil
            schemas[member.name] = .object(schema)
        }
        var described = document.object ?? JSONObject()
        var components = described["components"]?.object ?? JSONObject()
        components["schemas"] = .object(schemas)
        described["components"] = .object(components)
        return .object(described)
    }

    private var schema: JSONValue {
        let type = JSONValue.members(["type": .string("string"), "enum": .array([.string(name)])])
        let own = members.map { member -> (String, JSONValue?) in (member.name, member.schema) }
        var required = ["type"]
        var (text, examples) = (about, [example(without: [])])
        switch need {
        case .none: break
        case .all(let names): required += names
        case .any(let names): text += names.count > 2 ? "; at least one member" : "; `\(names[0])` or `\(names[1])`"
        case .one(let names):
            text += "; `" + names.joined(separator: "` or `") + "`"
            examples = names.map { name in example(without: names.filter { $0 != name }) }
        }
        return .members([
            "type": .string("object"),
            "properties": .members([("type", type)] + own),
            "required": .array(required.map { .string($0) }), "additionalProperties": .bool(false),
            "description": .string(text), "examples": .array(examples),
        ])
    }

    private func example(without names: [String]) -> JSONValue {
        let given = members.filter { !names.contains($0.name) }
            .map { member -> (String, JSONValue?) in (member.name, member.example) }
        return .members([("type", .string(name))] + given)
    }
}
