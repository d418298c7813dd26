import LarderCoding
import LarderHTTP

/// An OpenAPI description (3.0 or 3.1).
struct OpenAPIDocument: Sendable {
    /// How many references may follow each other.
    private static let referencesMaximum = 32

    let root: JSONValue

    /// The value itself, or what its `$ref` leads to inside this document; `.null` for a reference that leads nowhere.
    func resolved(_ value: JSONValue) -> JSONValue {
        var value = value
        for _ in 0..<Self.referencesMaximum {
            guard let reference = value["$ref"]?.string else { return value }
            guard reference.hasPrefix("#"), let target = root.value(at: String(reference.dropFirst())) else {
                return .null
            }
            value = target
        }
        return .null
    }
}

extension JSONValue {
    /// The names in the `type` of a schema.
    var schemaTypes: [String] { self["type"]?.string.map { [$0] } ?? self["type"]?.array?.compactMap(\.string) ?? [] }
}

extension OpenAPIDocument {
    /// Reads a description from a file.
    ///
    /// - Throws: an error that names the file and the line.
    init(at path: String) throws(FileError) {
        root = try Self.value(SourceFile.bytes(path), named: path)
    }

    /// The paths of the servers, without a last slash. Variables have their default values.
    var basePaths: [String] {
        (root["servers"]?.array ?? []).compactMap { server in
            guard var url = server["url"]?.string else { return nil }
            for variable in server["variables"]?.object?.members ?? [] {
                url = url.replacing("{\(variable.name)}", with: variable.value["default"]?.text ?? "")
            }
            let path = url.hasPrefix("/") ? url : HTTPURL(url)?.path ?? ""
            return path.hasSuffix("/") ? String(path.dropLast()) : path
        }
    }

    /// - Throws: an error about a description of another version, or a reference that leads nowhere.
    func check(named name: String) throws(FileError) {
        if root["swagger"] != nil {
            throw FileError("\(name): is a description in Swagger 2.0; convert it to OpenAPI 3")
        }
        if let reference = danglingReference(in: root) { throw FileError("\(name): has no \(reference)") }
    }

    private func danglingReference(in value: JSONValue) -> String? {
        switch value {
        case .array(let elements): return elements.lazy.compactMap { danglingReference(in: $0) }.first
        case .object(let object):
            if let reference = object["$ref"]?.string, reference.hasPrefix("#"),
                root.value(at: String(reference.dropFirst())) == nil
            {
                return reference
            }
            return object.members.lazy.compactMap { danglingReference(in: $0.value) }.first
        default: return nil
        }
    }

    /// The value of a document in JSON or YAML. What begins with a bracket is YAML only if its name says so.
    static func value(_ bytes: [UInt8], named name: String) throws(FileError) -> JSONValue {
        let first = bytes.first { $0 > UInt8(ascii: " ") && $0 < 0x80 }
        if first == UInt8(ascii: "{") || first == UInt8(ascii: "[") {
            // JSON is YAML, too, and read faster.
            do { return try SourceFile.json(bytes, named: name, maximumDepth: 256) } catch {
                guard name.hasSuffix(".yaml") || name.hasSuffix(".yml") else { throw error }
            }
        }
        do { return try YAMLReader.read(bytes) } catch {
            throw FileError("\(name):\(error.line): \(error.reason)")
        }
    }
}
