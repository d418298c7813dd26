import LarderCoding

extension FeatureFlags {
    /// The stored and transmitted value of a flag: a JSON value.
    public enum Setting: Sendable, Hashable {
        /// A boolean.
        case bool(Bool)
        case integer(Int64)
        /// Another number; it must be finite to be stored.
        case number(Double)
        case string(String)

        /// The maximum number of settings.
        public static let countMaximum = 4_096
        /// The maximum length of a name or a string, in bytes of UTF-8.
        public static let textMaximum = 4_096

        /// Parses a JSON object of settings, as a server sends them. For use in a fetch closure.
        ///
        /// Members with other values (null, arrays, objects) are skipped, because a newer server may send them.
        /// - Throws: `.unusable` if it is not a JSON object or too large.
        public static func settings(json: [UInt8]) throws(Failure) -> [String: Setting] {
            let object: JSONObject
            do {
                guard let parsed = try JSONParser.parse(json).object else {
                    throw Failure(.unusable, "Feature flags must be a JSON object of names and values.")
                }
                object = parsed
            } catch let error as Failure {
                throw error
            } catch {
                throw Failure(.unusable, "Feature flags are not JSON. \(error)", cause: error)
            }
            return try settings(object)
        }

        static func settings(_ object: JSONObject) throws(Failure) -> [String: Setting] {
            var settings: [String: Setting] = [:]
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

        static func check(_ settings: [String: Setting]) throws(Failure) {
            guard settings.count <= countMaximum else {
                throw Failure(
                    .unusable,
                    "\(settings.count) feature flags are more than \(countMaximum): send fewer."
                )
            }
            for (name, setting) in settings {
                var length = name.utf8.count
                if case .string(let text) = setting { length = max(length, text.utf8.count) }
                guard length <= textMaximum else {
                    throw Failure(
                        .unusable,
                        "The feature flag '\(name.prefix(64))' is longer than \(textMaximum) bytes."
                    )
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
}
