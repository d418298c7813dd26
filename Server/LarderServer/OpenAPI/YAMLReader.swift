import LarderCoding

/// Reads the part of YAML 1.2 that OpenAPI documents use: block and flow collections, plain, quoted, literal and folded text, comments.
///
/// Anchors, aliases, tags, complex keys, escapes that JSON has not, and several documents are rejected.
struct YAMLReader {
    struct Failure: Error {
        let line: Int
        let reason: String
    }

    private struct Line {
        let indent: Int
        let text: Substring

        var isElement: Bool { text == "-" || text.hasPrefix("- ") }
    }

    /// Of flow collections, and of spaces before blocks, which bound the depth of these.
    private static let depthMaximum = 200
    private var lines: [Line] = []
    private var index = 0

    static func read(_ bytes: [UInt8]) throws(Failure) -> JSONValue {
        var reader = YAMLReader()
        let text = String(decoding: bytes, as: UTF8.self)
        for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            let content = line.drop { $0 == " " }
            let text = content.allSatisfy(\.isWhitespace) ? "" : content
            reader.lines.append(Line(indent: line.count - content.count, text: text))
        }
        if text.last?.isNewline ?? false { reader.lines.removeLast() }
        while let line = reader.peek(), line.text.hasPrefix("%") || line.text == "---" { reader.index += 1 }
        let value = try reader.node(over: -1)
        guard reader.peek() == nil else { throw reader.failure("is no part of the value before, or a second document") }
        return value
    }

    private func failure(_ reason: String) -> Failure { Failure(line: min(index + 1, lines.count), reason: reason) }

    /// The next line with content; blank lines and comments are skipped.
    private mutating func peek() -> Line? {
        while index < lines.count, lines[index].text.first ?? "#" == "#" { index += 1 }
        return index < lines.count && lines[index].text != "..." ? lines[index] : nil
    }

    /// The value of the lines that are indented further than `parent`; null without one.
    private mutating func node(over parent: Int) throws(Failure) -> JSONValue {
        guard let line = peek(), line.indent > parent else { return .null }
        guard line.indent <= Self.depthMaximum else { throw failure("is indented too far") }
        if line.isElement { return try sequence(at: line.indent) }
        return try key(line.text) == nil ? try scalar(line.text, over: parent) : try mapping(at: line.indent)
    }

    private mutating func sequence(at indent: Int) throws(Failure) -> JSONValue {
        var elements: [JSONValue] = []
        while let line = peek(), line.indent == indent, line.isElement {
            let rest = line.text.dropFirst().drop { $0 == " " }
            // The element begins on this line, as if the dash were a space.
            lines[index] = Line(indent: indent + line.text.count - rest.count, text: rest)
            elements.append(try node(over: indent))
        }
        return .array(elements)
    }

    private mutating func mapping(at indent: Int) throws(Failure) -> JSONValue {
        var object = JSONObject()
        while let line = peek(), line.indent == indent, !line.isElement {
            guard let (name, rest) = try key(line.text) else { throw failure("must be `name: value`") }
            guard object[name] == nil else { throw failure("has the name '\(name)' for the second time") }
            if rest.first ?? "#" != "#" {
                object[name] = try scalar(rest, over: indent)
                continue
            }
            index += 1
            let isSequence = peek().map { $0.indent == indent && $0.isElement } ?? false
            object[name] = isSequence ? try sequence(at: indent) : try node(over: indent)
        }
        if let line = peek(), line.indent > indent { throw failure("is indented further than its neighbours") }
        return .object(object)
    }

    /// The name and the rest of `name: value`; nil for other text.
    private func key(_ text: Substring) throws(Failure) -> (name: String, rest: Substring)? {
        guard let first = text.first, first != "{", first != "[" else { return nil }
        var rest = text
        var name = ""
        if first == "\"" || first == "'" {
            guard let content = try quoted(&rest) else { return nil }
            name = content
        } else {
            guard let colon = text.firstRange(of: ": ")?.lowerBound ?? (text.last == ":" ? text.indices.last : nil),
                !text[..<colon].contains(" #")
            else { return nil }
            try check(text)
            (name, rest) = (Self.uncommented(text[..<colon]), text[colon...])
        }
        guard rest == ":" || rest.hasPrefix(": ") else { return nil }
        return (name, rest.dropFirst().drop { $0 == " " })
    }

    /// Rejects signs of YAML that are not supported.
    private func check(_ text: Substring) throws(Failure) {
        guard let sign = text.first, "&*!%@`\t".contains(sign) || text.hasPrefix("? ") else { return }
        let parts = "tabs, anchors, aliases, tags and complex keys are"
        throw failure("begins with '\(sign)': \(parts) not supported; convert the file to JSON")
    }

    /// The value that begins with `text`, on this line and the lines after it that are indented further than `parent`.
    private mutating func scalar(_ text: Substring, over parent: Int) throws(Failure) -> JSONValue {
        try check(text)
        let first = text.first ?? "#"
        if first == "|" || first == ">" { return .string(try block(text, over: parent)) }
        let isFlow = "\"'{[".contains(first)
        var joined = isFlow ? String(text) : Self.uncommented(text)
        var breaks = 0
        while true {
            if isFlow, let value = try collection(joined) {
                index += 1
                return value
            }
            index += 1
            // An empty line within a text is a line break.
            while index < lines.count, lines[index].text.isEmpty { (index, breaks) = (index + 1, breaks + 1) }
            guard index < lines.count, lines[index].indent > parent else { break }
            let line = lines[index].text
            if !isFlow, line.first == "#" { break }
            if !isFlow, try key(line) != nil { throw failure("is indented further than its neighbours") }
            let isContinued = first == "\"" && joined.reversed().prefix { $0 == "\\" }.count % 2 == 1
            let gap = breaks == 0 ? " " : String(repeating: "\n", count: breaks)
            joined = isContinued ? String(joined.dropLast()) : joined + gap
            joined += first == "\"" || first == "'" ? String(line) : line.first == "#" ? "" : Self.uncommented(line)
            breaks = 0
        }
        guard !isFlow else { throw failure("begins before the value of the line above has ended") }
        return Self.typed(joined)
    }

    /// A literal (`|`) or folded (`>`) text.
    private mutating func block(_ header: Substring, over parent: Int) throws(Failure) -> String {
        let signs = Self.uncommented(header).dropFirst()
        guard signs.isEmpty || signs == "-" || signs == "+" else {
            throw failure("begins a text with '\(header.prefix(8))'; only |, |-, |+, >, >- and >+ are supported")
        }
        index += 1
        // The indentation of the first line, and whether the line before was indented further, which is not folded.
        var (text, breaks, base, wasIndented) = ("", 0, Int?.none, false)
        while index < lines.count, lines[index].text.isEmpty || lines[index].indent > parent {
            let line = lines[index]
            index += 1
            if line.text.isEmpty {
                breaks += 1
                continue
            }
            let indent = line.indent - (base ?? line.indent)
            let folds = header.first == ">" && indent <= 0 && !wasIndented
            if base != nil, !folds { breaks += 1 }
            text += base != nil && folds && breaks == 0 ? " " : String(repeating: "\n", count: breaks)
            text += String(repeating: " ", count: max(0, indent)) + line.text
            (base, breaks, wasIndented) = (base ?? line.indent, 0, indent > 0)
        }
        if signs == "-" || text.isEmpty { return text }
        return text + String(repeating: "\n", count: signs == "+" ? breaks + 1 : 1)
    }

    /// The value of a quoted text or a flow collection; nil if it goes on in the next line.
    private func collection(_ text: String) throws(Failure) -> JSONValue? {
        var rest = text[...]
        guard let value = try flow(&rest, 0) else { return nil }
        guard Self.uncommented(" " + rest).isEmpty else { throw failure("has '\(rest.prefix(20))' behind a value") }
        return value
    }

    private func flow(_ rest: inout Substring, _ depth: Int) throws(Failure) -> JSONValue? {
        guard depth < Self.depthMaximum else { throw failure("is nested too deeply") }
        rest = rest.drop { $0.isWhitespace }
        guard let first = rest.first else { return nil }
        if first == "\"" || first == "'" { return try quoted(&rest).map { .string($0) } }
        guard first == "{" || first == "[" else {
            try check(rest)
            let end = rest.indices.first { ",]}".contains(rest[$0]) || rest[$0...].hasPrefix(": ") } ?? rest.endIndex
            defer { rest = rest[end...] }
            return Self.typed(Self.uncommented(rest[..<end]))
        }
        rest.removeFirst()
        var (elements, object) = ([JSONValue](), JSONObject())
        while true {
            rest = rest.drop { $0.isWhitespace }
            guard let next = rest.first else { return nil }
            if next == (first == "{" ? "}" : "]") {
                rest.removeFirst()
                return first == "{" ? .object(object) : .array(elements)
            }
            guard let value = try flow(&rest, depth + 1) else { return nil }
            rest = rest.drop { $0.isWhitespace }
            if first == "[" {
                elements.append(value)
            } else {
                if rest.isEmpty { return nil }
                guard rest.removeFirst() == ":" else { throw failure("must have `name: value` between { and }") }
                guard let inner = try flow(&rest, depth + 1) else { return nil }
                object[value.text] = inner
            }
            rest = rest.drop { $0.isWhitespace }
            if rest.first == "," {
                rest.removeFirst()
            } else if let sign = rest.first, sign != "}", sign != "]" {
                throw failure("has '\(rest.prefix(20))' where a comma must be")
            }
        }
    }

    /// Takes a text in quotes; nil if its end is not in `rest`.
    private func quoted(_ rest: inout Substring) throws(Failure) -> String? {
        let quote = rest.first
        var end = rest.dropFirst()
        while let next = end.first, next != quote || quote == "'" && end.hasPrefix("''") {
            // An escaped character does not end the text.
            end = end.dropFirst(next == quote || next == "\\" && quote == "\"" ? 2 : 1)
        }
        guard !end.isEmpty else { return nil }
        let content = rest[..<end.startIndex].dropFirst()
        rest = end.dropFirst()
        if quote == "'" { return String(content.replacing("''", with: "'")) }
        var (json, isEscaped) = ("", false)
        for sign in content {
            // An escaped space and `\x` are not in JSON.
            let escape = [" ": " ", "x": "\\u00"][sign] ?? "\\\(sign)"
            json += isEscaped ? escape : ["\n": "\\n", "\t": "\\t", "\\": ""][sign] ?? String(sign)
            isEscaped = sign == "\\" && !isEscaped
        }
        guard let text = try? JSONParser.parse(Array("\"\(json)\"".utf8)).string else {
            throw failure("has an escape in a quoted text that JSON has not")
        }
        return text
    }

    /// The text before ` #`, without spaces at its end.
    private static func uncommented(_ text: some StringProtocol) -> String {
        let end = text.firstRange(of: " #")?.lowerBound ?? text.endIndex
        return String(text[..<end].reversed().drop { $0.isWhitespace }.reversed())
    }

    /// A plain scalar of the core schema.
    private static func typed(_ text: String) -> JSONValue {
        let words: [String: JSONValue] = [
            "": .null, "~": .null, "null": .null, "true": .bool(true), "false": .bool(false),
        ]
        if let value = words[text.lowercased()] { return value }
        guard text.utf8.contains(where: { (48...57).contains($0) }),
            text.utf8.allSatisfy({ "+-.0123456789eE".utf8.contains($0) })
        else { return .string(text) }
        return Int64(text).map { .integer($0) } ?? Double(text).map { .number($0) } ?? .string(text)
    }
}
