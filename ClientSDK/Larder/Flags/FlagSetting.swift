import LarderCoding

/// A flag's value as it is stored and sent: what JSON has words for.
public enum FlagSetting: Sendable, Hashable {
    /// On or off.
    case bool(Bool)
    /// A whole number.
    case integer(Int64)
    /// Any other number; one that is not finite cannot be stored.
    case number(Double)
    /// A text.
    case string(String)

    /// How many settings there may be.
    public static let countMaximum = 4_096
    /// How long a name or a text may be, in bytes of UTF-8.
    public static let textMaximum = 4_096

    /// Settings from a JSON object, as a server sends them: what a fetch closure does with the content that it got.
    ///
    /// Members with other values (null, arrays, objects) are left out: a newer server may send what this program does not know.
    /// - Throws: `.unusable` where it is no JSON object or too large.
    public static func settings(json: [UInt8]) throws(FlagError) -> [String: FlagSetting] {
        let object: JSONObject
        do {
            guard let parsed = try JSONParser.parse(json).object else {
                throw FlagError(.unusable, "Feature flags must be a JSON object of names and values.")
            }
            object = parsed
        } catch let error as FlagError {
            throw error
        } catch {
            throw FlagError(.unusable, "Feature flags are not JSON. \(error)", cause: error)
        }
        return try settings(object)
    }

    static func settings(_ object: JSONObject) throws(FlagError) -> [String: FlagSetting] {
        var settings: [String: FlagSetting] = [:]
        for member in object.members {
            switch member.value {
            case .bool(let value): settings[member.name] = .bool(value)
            case .integer(let value): settings[member.name] = .integer(value)
            case .number(let value): settings[member.name] = .number(value)
            case .string(let value): settings[member.name] = .string(value)
            case .null, .array, .object: continue
            }
        }
        try check(settings)
        return settings
    }

    static func check(_ settings: [String: FlagSetting]) throws(FlagError) {
        guard settings.count <= countMaximum else {
            throw FlagError(.unusable, "\(settings.count) feature flags are more than \(countMaximum): send fewer.")
        }
        for (name, setting) in settings {
            var length = name.utf8.count
            if case .string(let text) = setting { length = max(length, text.utf8.count) }
            guard length <= textMaximum else {
                throw FlagError(.unusable, "The feature flag «\(name.prefix(64))» is longer than \(textMaximum) bytes.")
            }
        }
    }

    func write(to writer: inout JSONWriter) {
        switch self {
        case .bool(let value): writer.bool(value)
        case .integer(let value): writer.integer(value)
        case .number(let value): writer.number(value)
        case .string(let value): writer.string(value)
        }
    }
}
