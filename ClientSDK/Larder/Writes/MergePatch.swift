import Foundation
import LarderCoding

/// JSON merge patches (RFC 7396): a change of a document as a document. Null removes a member, and arrays are replaced as a whole.
enum MergePatch {
    /// The patch that makes one document of another; nil if they are equal.
    static func difference(from old: JSONValue, to new: JSONValue) -> JSONValue? {
        guard old != new else { return nil }
        guard let old = old.object, let new = new.object else { return new }
        var patch = JSONObject()
        for member in new.members {
            if let known = old[member.name] {
                patch[member.name] = difference(from: known, to: member.value)
            } else {
                patch[member.name] = member.value
            }
        }
        for member in old.members where new[member.name] == nil { patch[member.name] = .null }
        return .object(patch)
    }

    /// The document with the change.
    static func apply(_ patch: JSONValue, to document: JSONValue) -> JSONValue {
        guard let patch = patch.object else { return patch }
        var result = document.object ?? JSONObject()
        for member in patch.members {
            result[member.name] = member.value == .null ? nil : apply(member.value, to: result[member.name] ?? .null)
        }
        return .object(result)
    }

    /// One patch with the effect of two; nil if there is none: a patch cannot say that an object replaces another object.
    static func compose(_ older: JSONValue, _ newer: JSONValue) -> JSONValue? {
        guard let newer = newer.object else { return newer }
        guard var result = older.object else { return nil }
        for member in newer.members {
            if let known = result[member.name] {
                guard let composed = compose(known, member.value) else { return nil }
                result[member.name] = composed
            } else {
                result[member.name] = member.value
            }
        }
        return .object(result)
    }

    /// The document with a string in place of all that are equal to another one. Names of members stay.
    static func replacing(_ old: String, _ new: String, in document: JSONValue) -> JSONValue {
        switch document {
        case .string(old): return .string(new)
        case .array(let items): return .array(items.map { replacing(old, new, in: $0) })
        case .object(var object):
            for member in object.members { object[member.name] = replacing(old, new, in: member.value) }
            return .object(object)
        default: return document
        }
    }

    // MARK: Values

    /// A value as a document, by its own coding.
    static func document(_ value: some Encodable) throws -> JSONValue {
        try JSONParser.parse(Array(try JSONEncoder().encode(value)))
    }

    static func value<Value: Decodable>(_ type: Value.Type, _ document: JSONValue) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text(document).utf8))
    }

    /// A value with a change.
    static func apply<Value: Codable>(_ patch: JSONValue, to value: Value) throws -> Value {
        try self.value(Value.self, apply(patch, to: try document(value)))
    }

    static func text(_ document: JSONValue) -> String {
        var writer = JSONWriter()
        writer.value(document)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    static func parse(_ text: String) throws -> JSONValue { try JSONParser.parse(Array(text.utf8)) }
}
