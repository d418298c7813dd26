import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// A text with expressions in double braces, such as `Hello {{path.name}}`.
///
/// An expression is a part of the request or a state (`RouteSubject`), with an optional default in quotes, or one of `forms`.
struct RouteTemplate: Sendable {
    /// Why a text is not a template.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Makes the value of an expression.
    private typealias Value = @Sendable (RouteCall) throws -> JSONValue

    private enum Part: Sendable {
        case text(String)
        case expression(Value)
    }

    private var parts: [Part] = []

    /// - Parameter path: the path of its route; nil: it may name any parameter.
    init(_ text: String, in path: PathTemplate? = nil) throws(Failure) {
        var rest = text[...]
        while let open = rest.firstRange(of: "{{") {
            if open.lowerBound > rest.startIndex { parts.append(.text(String(rest[..<open.lowerBound]))) }
            guard let close = rest[open.upperBound...].firstRange(of: "}}") else {
                throw Failure(description: "has '{{' without '}}'")
            }
            parts.append(.expression(try Self.expression(rest[open.upperBound..<close.lowerBound], path)))
            rest = rest[close.upperBound...]
        }
        if !rest.isEmpty { parts.append(.text(String(rest))) }
    }

    // MARK: Expressions

    /// What the functions are written like.
    private static let forms = [
        "method": "method", "uuid": "uuid", "index": "index", "now": "now -3600", "counter": "counter orders",
        "fake": "fake name", "number": "number 1 100", "pick": "pick \"a\" \"b\"",
    ]

    /// The value of a function; nil for wrong arguments.
    private static func function(_ name: String, _ words: [String]) -> Value? {
        switch (name, words.count) {
        case ("method", 0): return { .string($0.request.method.rawValue) }
        case ("uuid", 0): return { .string(try $0.uuid()) }
        case ("index", 0): return { .integer($0.index) }
        case ("now", 0...1):
            guard let seconds = Int(words.first ?? "0"), (-3_153_600_000...3_153_600_000).contains(seconds) else {
                return nil
            }
            return { .string(($0.now + .seconds(seconds)).rfc3339()) }
        case ("counter", 1): return { .integer(try $0.number(of: words[0])) }
        case ("fake", 1):
            guard let draw = FakeValue.kinds[words[0]] else { return nil }
            return { draw(&$0.random) }
        case ("number", 2):
            // Exact in every reader of JSON.
            let bounds = words.compactMap { Int($0) }.filter { (-1 << 53...1 << 53).contains($0) }
            guard bounds.count == 2, bounds[0] <= bounds[1] else { return nil }
            return { .integer(Int64($0.random.uniform(in: bounds[0]..<bounds[1] + 1))) }
        case ("pick", 1...): return { .string(words[$0.random.uniform(in: 0..<words.count)]) }
        default: return nil
        }
    }

    private static func expression(_ text: Substring, _ path: PathTemplate?) throws(Failure) -> Value {
        let words = try words(text)
        guard let name = words.first else { throw Failure(description: "has an empty expression '{{}}'") }
        let arguments = Array(words.dropFirst())
        if let subject = RouteSubject(name) {
            if case .path(let parameter) = subject, let known = path?.names, !known.contains(parameter) {
                let hint = known.isEmpty ? "the path has none" : nearest(parameter, known)
                throw Failure(description: "has '{{\(text)}}', and the path has no such parameter; \(hint)")
            }
            guard arguments.count <= 1 else {
                throw Failure(description: "has '{{\(text)}}'; write '{{\(name) \"default\"}}'")
            }
            return { try subject.values($0).first ?? .string(arguments.first ?? "") }
        }
        guard let form = forms[name] else {
            let (root, known) = (String(name.prefix { $0 != "." }), RouteSubject.names + forms.keys.sorted())
            throw Failure(description: "has the unknown expression '{{\(text)}}'; \(nearest(root, known))")
        }
        if let value = function(name, arguments) { return value }
        if name == "fake", arguments.count == 1 {
            let known = FakeValue.kinds.keys.sorted()
            throw Failure(description: "has no fake '\(arguments[0])'; \(nearest(arguments[0], known))")
        }
        throw Failure(description: "has '{{\(text)}}'; write it as in '{{\(form)}}'")
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

    /// The text, if it has no expression.
    var literal: String? {
        let texts = parts.map { if case .text(let text) = $0 { text } else { nil as String? } }
        return texts.contains(nil) ? nil : texts.compactMap(\.self).joined()
    }

    // MARK: Rendering

    /// The text with the values of a request.
    func text(_ call: RouteCall) throws -> String {
        try parts.reduce(into: "") { text, part in
            switch part {
            case .text(let literal): text += literal
            case .expression(let value): text += try value(call).text
            }
        }
    }

    /// The value: of a template that is one expression with its own type, otherwise a text.
    func value(_ call: RouteCall) throws -> JSONValue {
        if parts.count == 1, case .expression(let value) = parts[0] { return try value(call) }
        return .string(try text(call))
    }
}

/// JSON with templates in its texts. An object whose only member is `{{repeat N}}` is an array of N such values.
indirect enum JSONTemplate: Sendable {
    case constant(JSONValue)
    case text(RouteTemplate)
    case array([JSONTemplate])
    case object([(name: String, value: JSONTemplate)])
    case `repeat`(Int, JSONTemplate)

    private static let repeatMaximum = 1_000

    init(_ value: JSONValue, in path: PathTemplate? = nil) throws(RouteTemplate.Failure) {
        switch value {
        case .string(let text) where text.contains("{{"): self = .text(try RouteTemplate(text, in: path))
        case .array(let elements):
            self = .array(
                try elements.map { element throws(RouteTemplate.Failure) in try JSONTemplate(element, in: path) }
            )
        case .object(let object):
            if let member = object.members.first(where: { Self.repeatWords($0.name) != nil }) {
                guard object.members.count == 1 else {
                    let detail = "has '\(member.name)' beside other members; it must be the only one of its object"
                    throw RouteTemplate.Failure(description: detail)
                }
                let words = Self.repeatWords(member.name) ?? []
                guard member.name.hasSuffix("}}"), words.count == 1, let count = Int(words[0]),
                    (0...Self.repeatMaximum).contains(count)
                else {
                    let detail = "has '\(member.name)'; repeat takes a number up to \(Self.repeatMaximum)"
                    throw RouteTemplate.Failure(description: detail)
                }
                self = .repeat(count, try JSONTemplate(member.value, in: path))
            } else {
                self = .object(
                    try object.members.map { member throws(RouteTemplate.Failure) in
                        (member.name, try JSONTemplate(member.value, in: path))
                    }
                )
            }
        default: self = .constant(value)
        }
    }

    /// The words behind `{{repeat`; nil for another member name.
    private static func repeatWords(_ name: String) -> [Substring]? {
        guard name.hasPrefix("{{") else { return nil }
        let words = name.dropFirst(2).prefix { $0 != "}" }.split(separator: " ")
        return words.first == "repeat" ? Array(words.dropFirst()) : nil
    }

    func value(_ call: RouteCall) throws -> JSONValue {
        switch self {
        case .constant(let value): return value
        case .text(let template): return try template.value(call)
        case .array(let elements): return .array(try elements.map { try $0.value(call) })
        case .object(let members):
            return .members(try members.map { ($0.name, try $0.value.value(call)) })
        case .repeat(let count, let element):
            let (index, numbers) = (call.index, call.numbers)
            defer { (call.index, call.numbers) = (index, numbers) }
            return .array(
                try (0..<count).map { index in
                    (call.index, call.numbers) = (Int64(index), [:])
                    return try element.value(call)
                }
            )
        }
    }
}
