import LarderCoding
import LarderHTTP

/// Reads the members of a JSON body and collects all errors, so that one reply names them all.
///
/// Read every member, then call `finish()`: it throws one `validation-failed` with an error for each member that is missing, of
/// the wrong type, out of bounds or unknown.
struct BodyReader {
    private let object: JSONObject
    private let pointer: String
    private var read: Set<String> = []
    private(set) var errors: [Problem.FieldError] = []

    /// - Parameter pointer: The JSON pointer of `object` in the body; empty for the body itself.
    init(_ object: JSONObject, at pointer: String = "") {
        self.object = object
        self.pointer = pointer
    }

    mutating func string(_ name: String, length: ClosedRange<Int>) -> String? {
        guard let value = required(name) else { return nil }
        return string(value, name, length)
    }

    mutating func optionalString(_ name: String, length: ClosedRange<Int>) -> String? {
        guard let value = optional(name) else { return nil }
        return string(value, name, length)
    }

    mutating func positiveInteger(_ name: String) -> Int64? {
        guard let value = required(name) else { return nil }
        guard case .integer(let number) = value, number > 0 else {
            fail(name, "must be a positive integer without a fraction or an exponent")
            return nil
        }
        return number
    }

    mutating func bool(_ name: String) -> Bool? {
        guard let value = required(name) else { return nil }
        guard case .bool(let bool) = value else {
            fail(name, "must be true or false")
            return nil
        }
        return bool
    }

    mutating func identifier(_ name: String, _ kind: EntityKind) -> Int64? {
        guard let value = required(name) else { return nil }
        guard case .string(let text) = value, let id = EntityID(kind, parsing: text) else {
            fail(name, "must be an identifier such as \"\(kind.prefix)1\"")
            return nil
        }
        return id.row
    }

    mutating func object(_ name: String) -> JSONObject? {
        guard let value = required(name) else { return nil }
        guard case .object(let object) = value else {
            fail(name, "must be an object")
            return nil
        }
        return object
    }

    mutating func array(_ name: String, count: ClosedRange<Int>) -> [JSONValue]? {
        guard let value = required(name) else { return nil }
        guard case .array(let items) = value else {
            fail(name, "must be an array")
            return nil
        }
        guard count.contains(items.count) else {
            fail(name, "must have \(count.lowerBound) to \(count.upperBound) items, has \(items.count)")
            return nil
        }
        return items
    }

    /// The value of an optional member, which may be null. The caller checks its type.
    mutating func optional(_ name: String) -> JSONValue? {
        read.insert(name)
        guard let value = object[name], value != .null else { return nil }
        return value
    }

    mutating func fail(_ name: String, _ detail: String) {
        errors.append(Problem.FieldError(pointer: pointer + "/" + JSONPointer.escape(name), detail: detail))
    }

    mutating func add(_ more: [Problem.FieldError]) { errors.append(contentsOf: more) }

    /// All errors so far, with one for each member that was not read.
    mutating func allErrors() -> [Problem.FieldError] {
        for member in object.members where !read.contains(member.name) {
            fail(member.name, "is not a member of this resource")
        }
        return errors
    }

    mutating func finish() throws(Problem) {
        let errors = allErrors()
        guard errors.isEmpty else {
            let count = errors.count == 1 ? "One member is" : "\(errors.count) members are"
            throw ProblemType.validationFailed("\(count) invalid.", errors: errors)
        }
    }

    private mutating func required(_ name: String) -> JSONValue? {
        read.insert(name)
        guard let value = object[name] else {
            fail(name, "is missing")
            return nil
        }
        return value
    }

    private mutating func string(_ value: JSONValue, _ name: String, _ length: ClosedRange<Int>) -> String? {
        guard case .string(let text) = value else {
            fail(name, "must be a string")
            return nil
        }
        // Counted in Unicode scalars, like a database column or another platform's string, not in graphemes.
        guard length.contains(text.unicodeScalars.count) else {
            fail(name, "must have \(length.lowerBound) to \(length.upperBound) characters")
            return nil
        }
        return text
    }
}
