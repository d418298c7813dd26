import LarderBackend
package import LarderCoding
import LarderHTTP
import LarderTime

/// Collects the errors in a settings document, so that one reply names them all.
final class SettingsErrors {
    private(set) var all: [Problem.FieldError] = []
    private static let countMaximum = 200

    func add(_ pointer: String, _ detail: String) {
        guard all.count < Self.countMaximum else { return }
        all.append(Problem.FieldError(pointer: pointer, detail: detail))
    }

    /// Whether there is an error for the member or for something in it.
    func has(_ pointer: String) -> Bool {
        all.contains { $0.pointer == pointer || $0.pointer.hasPrefix(pointer + "/") }
    }

    /// Throws `validation-failed` with all errors.
    func check() throws(Problem) {
        guard !all.isEmpty else { return }
        let count = all.count == 1 ? "One member is" : "\(all.count) members are"
        throw ProblemType.validationFailed("\(count) invalid.", errors: all)
    }
}

/// One object of a settings document. Members that are not read are reported as unknown.
struct SettingsReader {
    let object: JSONObject
    let pointer: String
    let errors: SettingsErrors
    private var read: Set<String> = []

    init(_ object: JSONObject, at pointer: String = "", _ errors: SettingsErrors) {
        self.object = object
        self.pointer = pointer
        self.errors = errors
    }

    /// Reports every member that was not read.
    func finish() {
        for member in object.members where !read.contains(member.name) {
            let known = read.sorted().joined(separator: ", ")
            fail(member.name, "is unknown; known members are \(known)")
        }
    }

    func fail(_ name: String, _ detail: String) { errors.add(path(name), detail) }

    /// Reports a missing member, unless there already is an error for it.
    ///
    /// - Parameter others: members that could replace it.
    func failMissing(_ name: String, or others: String..., because detail: String) {
        guard !([name] + others).contains(where: { errors.has(path($0)) }) else { return }
        fail(name, detail)
    }

    func failMissing(_ name: String, _ detail: String) { failMissing(name, because: detail) }

    func path(_ name: String) -> String { pointer + "/" + JSONPointer.escape(name) }

    mutating func value(_ name: String) -> JSONValue? {
        read.insert(name)
        guard let value = object[name], value != .null else { return nil }
        return value
    }

    mutating func has(_ name: String) -> Bool { value(name) != nil }

    mutating func string(_ name: String, length: ClosedRange<Int> = 1...2_048) -> String? {
        guard let value = value(name) else { return nil }
        guard let text = value.string, length.contains(text.utf8.count) else {
            fail(name, "must be a string of \(length.lowerBound) to \(length.upperBound) bytes")
            return nil
        }
        return text
    }

    mutating func bool(_ name: String, default standard: Bool = false) -> Bool {
        guard let value = value(name) else { return standard }
        guard let bool = value.bool else {
            fail(name, "must be true or false")
            return standard
        }
        return bool
    }

    mutating func integer(_ name: String, in range: ClosedRange<Int>) -> Int? {
        guard let value = value(name) else { return nil }
        guard let integer = value.integer, let number = Int(exactly: integer), range.contains(number) else {
            fail(name, "must be an integer from \(range.lowerBound) to \(range.upperBound)")
            return nil
        }
        return number
    }

    mutating func number(_ name: String, in range: ClosedRange<Double>) -> Double? {
        guard let value = value(name) else { return nil }
        guard let number = value.double, range.contains(number) else {
            fail(name, "must be a number from \(range.lowerBound) to \(range.upperBound)")
            return nil
        }
        return number
    }

    /// A number of seconds, with an optional fraction.
    mutating func seconds(_ name: String, maximum: Double = 31_536_000) -> Duration? {
        number(name, in: 0...maximum).map { .seconds($0) }
    }

    /// Every member of the object as a number of seconds, at most 100 years in either direction.
    func durations() -> [String: Duration] {
        var durations: [String: Duration] = [:]
        for member in object.members {
            guard let seconds = member.value.double, abs(seconds) <= 3_153_600_000 else {
                fail(member.name, "must be a number of seconds, at most 100 years")
                continue
            }
            durations[member.name] = .seconds(seconds)
        }
        return durations
    }

    mutating func choice<Value: RawRepresentable & CaseIterable>(_ name: String, _ type: Value.Type) -> Value?
    where Value.RawValue == String {
        guard let value = value(name) else { return nil }
        guard let choice = value.string.flatMap({ Value(rawValue: $0) }) else {
            fail(name, "must be one of " + Value.allCases.map(\.rawValue).joined(separator: ", "))
            return nil
        }
        return choice
    }

    mutating func child(_ name: String) -> SettingsReader? {
        guard let value = value(name) else { return nil }
        guard case .object(let object) = value else {
            fail(name, "must be an object")
            return nil
        }
        return SettingsReader(object, at: path(name), errors)
    }

    /// The elements of an array, each with its pointer.
    mutating func array(_ name: String, countMaximum: Int = 10_000) -> [(value: JSONValue, pointer: String)]? {
        guard let value = value(name) else { return nil }
        guard let array = value.array, array.count <= countMaximum else {
            fail(name, "must be an array of at most \(countMaximum) elements")
            return nil
        }
        return array.enumerated().map { ($0.element, path(name) + "/\($0.offset)") }
    }

    mutating func objects(_ name: String, countMaximum: Int = 10_000) -> [SettingsReader]? {
        array(name, countMaximum: countMaximum)?.compactMap { element in
            guard case .object(let object) = element.value else {
                errors.add(element.pointer, "must be an object")
                return nil
            }
            return SettingsReader(object, at: element.pointer, errors)
        }
    }

    /// A map from names to strings.
    mutating func texts(_ name: String) -> [String: String] {
        guard let child = child(name) else { return [:] }
        var texts: [String: String] = [:]
        for member in child.object.members {
            if let text = member.value.string {
                texts[member.name] = text
            } else {
                child.fail(member.name, "must be a string")
            }
        }
        return texts
    }
}

extension JSONValue {
    /// The number as a double.
    var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }

    /// A duration in the control plane's form: seconds.
    static func seconds(_ duration: Duration) -> JSONValue {
        let nanoseconds = duration.nanosecondsSaturating
        if nanoseconds % 1_000_000_000 == 0 { return .integer(nanoseconds / 1_000_000_000) }
        return .number(Double(nanoseconds) / 1e9)
    }

    /// An object of the members that are not nil.
    package static func members(_ members: KeyValuePairs<String, JSONValue?>) -> JSONValue {
        var object = JSONObject()
        for (name, value) in members where value != nil { object[name] = value }
        return .object(object)
    }

    /// The value at a JSON pointer (RFC 6901).
    func value(at pointer: String) -> JSONValue? {
        guard !pointer.isEmpty else { return self }
        guard pointer.hasPrefix("/") else { return nil }
        var current = self
        for token in pointer.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            let name = token.split(separator: "~1", omittingEmptySubsequences: false).joined(separator: "/")
                .split(separator: "~0", omittingEmptySubsequences: false).joined(separator: "~")
            switch current {
            case .object(let object):
                guard let next = object[name] else { return nil }
                current = next
            case .array(let array):
                guard let index = Int(name), array.indices.contains(index) else { return nil }
                current = array[index]
            default: return nil
            }
        }
        return current
    }

    /// Compact JSON.
    package var encoded: [UInt8] {
        var writer = JSONWriter(capacity: 512)
        writer.value(self)
        return writer.bytes
    }
}
