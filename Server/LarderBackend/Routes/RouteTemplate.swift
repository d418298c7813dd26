package import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// A text with expressions in double braces, such as `Hello {{path.name}}`.
///
/// Expressions: `path.NAME`, `query.NAME`, `field.NAME`, `body`, `body.PATH`, `state.NAME`, each with an optional default in quotes;
/// `method`, `now` and `now SECONDS`, `uuid`, `counter NAME`, `index`, `fake KIND`, `number LOW HIGH`, `pick "A" "B" …`.
package struct RouteTemplate: Sendable {
    /// Why a text is not a template.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    private enum Part: Sendable {
        case text(String)
        case expression(Expression)
    }

    private enum Expression: Sendable {
        case value(RouteSubject, otherwise: String)
        case method, uuid, index
        case now(offset: Duration)
        case counter(String)
        case fake(FakeValue)
        case number(ClosedRange<Int>)
        case pick([String])
    }

    private var parts: [Part] = []

    /// Whether rendering changes the values that routes keep.
    package var writes: Bool {
        parts.contains { part in
            switch part {
            case .expression(.uuid), .expression(.counter): true
            default: false
            }
        }
    }

    /// Whether rendering reads the values that routes keep.
    package var reads: Bool {
        parts.contains { if case .expression(.value(.state, _)) = $0 { true } else { false } }
    }

    package init(_ text: String) throws(Failure) {
        var rest = text[...]
        while let open = rest.firstRange(of: "{{") {
            if open.lowerBound > rest.startIndex { parts.append(.text(String(rest[..<open.lowerBound]))) }
            guard let close = rest[open.upperBound...].firstRange(of: "}}") else {
                throw Failure(description: "has '{{' without '}}'")
            }
            let inner = rest[open.upperBound..<close.lowerBound]
            parts.append(.expression(try Self.expression(inner)))
            rest = rest[close.upperBound...]
        }
        if !rest.isEmpty { parts.append(.text(String(rest))) }
    }

    // MARK: Parsing

    private static let names = [
        "path", "query", "field", "body", "state", "method", "now", "uuid", "counter", "index", "fake", "number",
        "pick",
    ]

    private static func expression(_ text: Substring) throws(Failure) -> Expression {
        let words = try words(text)
        guard let name = words.first else { throw Failure(description: "has an empty expression '{{}}'") }
        let arguments = Array(words.dropFirst())
        func check(_ count: ClosedRange<Int>, _ form: String) throws(Failure) {
            guard count.contains(arguments.count) else {
                throw Failure(description: "has '{{\(text)}}'; write '{{\(form)}}'")
            }
        }
        if let subject = RouteSubject(name) {
            try check(0...1, "\(name) \"default\"")
            return .value(subject, otherwise: arguments.first ?? "")
        }
        switch name {
        case "method": try check(0...0, "method"); return .method
        case "uuid": try check(0...0, "uuid"); return .uuid
        case "index": try check(0...0, "index"); return .index
        case "now":
            try check(0...1, "now 3600")
            guard let seconds = Int(arguments.first ?? "0"), abs(seconds) <= 3_153_600_000 else {
                throw Failure(
                    description: "has '{{\(text)}}'; give 'now' an offset in seconds, such as '{{now -3600}}'"
                )
            }
            return .now(offset: .seconds(seconds))
        case "counter": try check(1...1, "counter orders"); return .counter(arguments[0])
        case "fake":
            try check(1...1, "fake name")
            if let kind = FakeValue(rawValue: arguments[0]) { return .fake(kind) }
            let known = FakeValue.allCases.map(\.rawValue)
            throw Failure(description: "has no fake '\(arguments[0])'; \(nearest(arguments[0], known))")
        case "number":
            try check(2...2, "number 1 100")
            guard let low = Int(arguments[0]), let high = Int(arguments[1]), low <= high,
                abs(low) <= 1 << 53, abs(high) <= 1 << 53
            else {
                throw Failure(description: "has '{{\(text)}}'; write the lower number first, as in '{{number 1 100}}'")
            }
            return .number(low...high)
        case "pick": try check(1...100, "pick \"a\" \"b\""); return .pick(arguments)
        default:
            let root = String(name.prefix { $0 != "." })
            throw Failure(description: "has the unknown expression '{{\(text)}}'; \(nearest(root, names))")
        }
    }

    private static func nearest(_ name: String, _ known: [String]) -> String {
        NearestName.similar(to: name, in: known).first.map { "did you mean '\($0)'?" }
            ?? "known are \(known.joined(separator: ", "))"
    }

    /// Words between spaces; a word in quotes may have spaces.
    private static func words(_ text: Substring) throws(Failure) -> [String] {
        var words: [String] = []
        var rest = text.drop { $0 == " " }
        while let first = rest.first {
            let isQuoted = first == "\"" || first == "'"
            if isQuoted { rest.removeFirst() }
            let word = rest.prefix { isQuoted ? $0 != first : $0 != " " }
            rest = rest.dropFirst(word.count)
            if isQuoted, rest.popFirst() == nil {
                throw Failure(description: "has a quote without an end in '{{\(text)}}'")
            }
            words.append(String(word))
            rest = rest.drop { $0 == " " }
        }
        return words
    }

    // MARK: Rendering

    /// The text with the values of a request.
    func text(_ call: RouteCall) throws -> String {
        try parts.reduce(into: "") { text, part in
            switch part {
            case .text(let literal): text += literal
            case .expression(let expression): text += try Self.text(Self.value(expression, call))
            }
        }
    }

    /// The value: of a template that is one expression with its own type, otherwise a text.
    func value(_ call: RouteCall) throws -> JSONValue {
        if parts.count == 1, case .expression(let expression) = parts[0] { return try Self.value(expression, call) }
        return .string(try text(call))
    }

    static func text(_ value: JSONValue) -> String {
        value.string ?? String(decoding: DocumentJSON.encode(value), as: UTF8.self)
    }

    private static func value(_ expression: Expression, _ call: RouteCall) throws -> JSONValue {
        switch expression {
        case .value(let subject, let otherwise): return try subject.values(call).first ?? .string(otherwise)
        case .method: return .string(call.request.method.rawValue)
        case .uuid: return .string(try call.uuid())
        case .index: return .integer(call.index)
        case .now(let offset): return .string((call.now + offset).rfc3339())
        case .counter(let name): return .integer(try call.count(name))
        case .fake(let kind): return kind.draw(&call.random)
        case .number(let range):
            return .integer(Int64(call.random.uniform(in: range.lowerBound..<range.upperBound + 1)))
        case .pick(let texts): return .string(texts[call.random.uniform(in: 0..<texts.count)])
        }
    }
}

/// JSON with templates in its texts and member names. An object whose only member is `{{repeat N}}` is an array of N such values.
package indirect enum JSONTemplate: Sendable {
    case constant(JSONValue)
    case text(RouteTemplate)
    case array([JSONTemplate])
    case object([(name: String, value: JSONTemplate)])
    case `repeat`(Int, JSONTemplate)

    private static let repeatMaximum = 1_000

    package init(_ value: JSONValue) throws(RouteTemplate.Failure) {
        switch value {
        case .string(let text) where text.contains("{{"): self = .text(try RouteTemplate(text))
        case .array(let elements):
            self = .array(try elements.map { element throws(RouteTemplate.Failure) in try JSONTemplate(element) })
        case .object(let object):
            if object.members.count == 1, let member = object.members.first, member.name.hasPrefix("{{repeat ") {
                guard member.name.hasSuffix("}}"), let count = Int(member.name.dropFirst(9).dropLast(2)),
                    (0...Self.repeatMaximum).contains(count)
                else {
                    let detail = "has '\(member.name)'; repeat takes a number up to \(Self.repeatMaximum)"
                    throw RouteTemplate.Failure(description: detail)
                }
                self = .repeat(count, try JSONTemplate(member.value))
            } else {
                self = .object(
                    try object.members.map { member throws(RouteTemplate.Failure) in
                        (member.name, try JSONTemplate(member.value))
                    }
                )
            }
        default: self = .constant(value)
        }
    }

    package var writes: Bool { contains(\.writes) }
    package var reads: Bool { contains(\.reads) }

    private func contains(_ property: KeyPath<RouteTemplate, Bool>) -> Bool {
        switch self {
        case .constant: false
        case .text(let template): template[keyPath: property]
        case .array(let elements): elements.contains { $0.contains(property) }
        case .object(let members): members.contains { $0.value.contains(property) }
        case .repeat(_, let element): element.contains(property)
        }
    }

    func value(_ call: RouteCall) throws -> JSONValue {
        switch self {
        case .constant(let value): return value
        case .text(let template): return try template.value(call)
        case .array(let elements): return .array(try elements.map { try $0.value(call) })
        case .object(let members):
            return .object(
                JSONObject(try members.map { JSONObject.Member(name: $0.name, value: try $0.value.value(call)) })
            )
        case .repeat(let count, let element):
            let outer = call.index
            defer { call.index = outer }
            return .array(
                try (0..<count).map { index in
                    call.index = Int64(index)
                    return try element.value(call)
                }
            )
        }
    }
}
