package import LarderCoding
package import LarderHTTP

/// Collects the errors in a JSON body, so that one reply names them all.
package final class BodyErrors {
    package private(set) var all: [Problem.FieldError] = []
    private static let countMaximum = 200

    package init() {}

    package func add(_ pointer: String, _ detail: String) {
        guard all.count < Self.countMaximum else { return }
        all.append(Problem.FieldError(pointer: pointer, detail: detail))
    }

    /// Whether there is an error for the member or for something in it.
    package func has(_ pointer: String) -> Bool {
        all.contains { $0.pointer == pointer || $0.pointer.hasPrefix(pointer + "/") }
    }

    /// Throws `validation-failed` with all errors.
    package func check() throws(Problem) {
        guard !all.isEmpty else { return }
        let count = all.count == 1 ? "One member is" : "\(all.count) members are"
        throw ProblemType.validationFailed("\(count) invalid.", errors: all)
    }
}

/// Reads the members of an object in a JSON body, and collects all errors, so that one reply names them all.
///
/// Require the members that must be there, read every member, also of the objects in it, then call `check()`. A member that is absent or
/// null is nil. A reader belongs to the thread that made it.
package final class BodyReader {
    package let object: JSONObject
    package let pointer: String
    package let errors: BodyErrors
    private var read: Set<String> = []
    /// The readers of objects in this one.
    private var inner: [BodyReader] = []

    /// - Parameters:
    ///   - pointer: the JSON pointer of `object` in the body; empty for the body itself.
    ///   - errors: where errors are added.
    package init(_ object: JSONObject, at pointer: String = "", _ errors: BodyErrors = BodyErrors()) {
        self.object = object
        self.pointer = pointer
        self.errors = errors
    }

    /// The members of an object that may have any.
    package var members: [JSONObject.Member] {
        read.formUnion(object.members.map(\.name))
        return object.members
    }

    /// Reports each of these members that is missing or null.
    package func require(_ names: String...) {
        for name in names where value(name) == nil {
            fail(name, object[name] == nil ? "is missing" : "must not be null")
        }
    }

    /// Reports every member that was not read, and throws `validation-failed` if there is any error.
    package func check() throws(Problem) {
        finish()
        try errors.check()
    }

    /// Reports every member that was not read, also of the objects in this one.
    package func finish() {
        for reader in inner { reader.finish() }
        for member in object.members where !read.contains(member.name) {
            let known = read.sorted()
            let nearest = NearestName.similar(to: member.name, in: known).first.map { "did you mean `\($0)`? " } ?? ""
            fail(member.name, "is unknown; \(nearest)known members are \(known.joined(separator: ", "))")
        }
    }

    package func fail(_ name: String, _ detail: String) { errors.add(path(name), detail) }

    /// Reports that none of the members is given, at the first one, unless there already is an error for one of them.
    package func failMissing(anyOf names: [String], _ detail: String) {
        guard let first = names.first, !names.contains(where: { errors.has(path($0)) }) else { return }
        fail(first, detail)
    }

    package func failMissing(_ name: String, _ detail: String) { failMissing(anyOf: [name], detail) }

    /// What `make` makes of a member; its error is one of the member.
    package func made<Value>(_ name: String, _ make: () throws -> Value) -> Value? {
        do { return try make() } catch {
            fail(name, "\(error)")
            return nil
        }
    }

    package func path(_ name: String) -> String { pointer + "/" + JSONPointer.escape(name) }

    package func value(_ name: String) -> JSONValue? {
        read.insert(name)
        guard let value = object[name], value != .null else { return nil }
        return value
    }

    package func has(_ name: String) -> Bool { value(name) != nil }

    /// What `make` makes of a member; if it makes nothing, the member has an error.
    private func member<Value>(
        _ name: String,
        _ expectation: @autoclosure () -> String,
        _ make: (JSONValue) -> Value?
    ) -> Value? {
        guard let value = value(name) else { return nil }
        if let made = make(value) { return made }
        fail(name, "must be " + expectation())
        return nil
    }

    package func string(_ name: String, length: ClosedRange<Int> = 1...2_048) -> String? {
        member(name, "a string of \(length.lowerBound) to \(length.upperBound) characters") { value in
            // Counted in Unicode scalars, like a database column or another platform's string, not in graphemes.
            value.string.flatMap { length.contains($0.unicodeScalars.count) ? $0 : nil }
        }
    }

    /// A text in a merge patch (RFC 7396), which must not be null: it cannot be removed.
    func patched(_ name: String, length: ClosedRange<Int>) -> String? {
        if object[name] != nil { require(name) }
        return string(name, length: length)
    }

    package func bool(_ name: String, default standard: Bool = false) -> Bool {
        member(name, "true or false") { $0.bool } ?? standard
    }

    func identifier(_ name: String, _ kind: EntityKind) -> Int64? {
        member(name, "an identifier such as \"\(kind.prefix)1\"") { value in
            value.string.flatMap { EntityID(kind, parsing: $0)?.row }
        }
    }

    package func integer(_ name: String, in range: ClosedRange<Int>) -> Int? {
        member(name, "an integer from \(range.lowerBound) to \(range.upperBound)") { value in
            value.integer.flatMap { Int(exactly: $0) }.flatMap { range.contains($0) ? $0 : nil }
        }
    }

    package func number(_ name: String, in range: ClosedRange<Double>) -> Double? {
        member(name, "a number from \(range.lowerBound) to \(range.upperBound)") { value in
            value.double.flatMap { range.contains($0) ? $0 : nil }
        }
    }

    /// A number of seconds, with an optional fraction.
    package func seconds(_ name: String, maximum: Double = 31_536_000) -> Duration? {
        number(name, in: 0...maximum).map { .seconds($0) }
    }

    /// Every member of the object as a number of seconds, at most 100 years in either direction.
    package func durations() -> [String: Duration] {
        var durations: [String: Duration] = [:]
        for member in members {
            guard let seconds = member.value.double, abs(seconds) <= 3_153_600_000 else {
                fail(member.name, "must be a number of seconds, at most 100 years")
                continue
            }
            durations[member.name] = .seconds(seconds)
        }
        return durations
    }

    package func choice<Value: RawRepresentable & CaseIterable>(_ name: String, _ type: Value.Type) -> Value?
    where Value.RawValue == String {
        guard let value = value(name) else { return nil }
        guard let choice = value.string.flatMap({ Value(rawValue: $0) }) else {
            failChoice(name, Value.allCases.map(\.rawValue))
            return nil
        }
        return choice
    }

    /// Reports a member that has none of its possible values.
    package func failChoice(_ name: String, _ known: [String]) {
        let nearest = object[name]?.string.flatMap { NearestName.similar(to: $0, in: known).first }
        fail(
            name,
            (nearest.map { "did you mean `\($0)`? It " } ?? "") + "must be one of " + known.joined(separator: ", ")
        )
    }

    /// The elements of an array, of which each is one of several words.
    package func choices<Value: RawRepresentable<String> & CaseIterable>(_ name: String, _ type: Value.Type) -> [Value]
    {
        (array(name) ?? []).compactMap { element in
            let choice = element.value.string.flatMap { Value(rawValue: $0) }
            let known = Value.allCases.map(\.rawValue).joined(separator: ", ")
            if choice == nil { errors.add(element.pointer, "must be one of \(known)") }
            return choice
        }
    }

    package func child(_ name: String) -> BodyReader? {
        member(name, "an object") { $0.object }.map { reader($0, at: path(name)) }
    }

    private func reader(_ object: JSONObject, at pointer: String) -> BodyReader {
        let reader = BodyReader(object, at: pointer, errors)
        inner.append(reader)
        return reader
    }

    /// The elements of an array, each with its pointer.
    package func array(_ name: String, count: ClosedRange<Int> = 0...10_000) -> [(
        value: JSONValue, pointer: String
    )]? {
        let array = member(name, "an array of \(count.lowerBound) to \(count.upperBound) elements") { value in
            value.array.flatMap { count.contains($0.count) ? $0 : nil }
        }
        return array?.enumerated().map { ($0.element, path(name) + "/\($0.offset)") }
    }

    package func objects(_ name: String, count: ClosedRange<Int> = 0...10_000) -> [BodyReader]? {
        array(name, count: count)?.compactMap { element in
            guard case .object(let object) = element.value else {
                errors.add(element.pointer, "must be an object")
                return nil
            }
            return reader(object, at: element.pointer)
        }
    }

    /// The object itself, or the elements of its member `name` if that is given, as `read` reads them.
    package func one<Value>(or name: String, _ read: (BodyReader) -> Value?) -> [Value] {
        (object[name] == nil ? [self] : objects(name) ?? []).compactMap(read)
    }

    /// A map from names to strings.
    package func texts(_ name: String) -> [String: String] {
        guard let child = child(name) else { return [:] }
        return child.members.reduce(into: [:]) { texts, member in
            texts[member.name] = member.value.string
            if member.value.string == nil { child.fail(member.name, "must be a string") }
        }
    }
}

extension JSONObject {
    /// The object in a body.
    ///
    /// - Throws: `malformed-json`, or `validation-failed` for another value.
    package init(body: [UInt8]) throws(Problem) {
        let value: JSONValue
        do { value = try JSONParser.parse(body) } catch { throw ProblemType.malformedJSON("\(error)") }
        guard case .object(let object) = value else {
            throw ProblemType.validationFailed("The body must be an object.", at: "", "must be an object")
        }
        self = object
    }
}

extension JSONValue {
    package var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }
}
