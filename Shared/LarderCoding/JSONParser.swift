/// A JSON syntax error with its position.
package struct JSONError: Error, Sendable, Hashable, CustomStringConvertible {
    package let reason: String
    /// In bytes from the beginning.
    package let offset: Int
    /// From 1.
    package let line: Int
    /// In bytes from 1.
    package let column: Int

    package var description: String { "Line \(line), column \(column): \(reason)." }
}

/// A strict parser of RFC 8259: UTF-8 is validated, member names are unique, integers are exact, depth is bounded.
package struct JSONParser {
    private let bytes: [UInt8]
    private let maximumDepth: Int
    private var index = 0
    /// The tokens of a JSON pointer whose place is sought, how many of them were found, and the place of the last one.
    private var sought: [Substring] = []
    private var foundCount = 0
    private var found = 0

    /// Parses a whole document.
    ///
    /// Cost: one pass, and one allocation for each string, array and object.
    package static func parse(_ bytes: [UInt8], maximumDepth: Int = 64) throws(JSONError) -> JSONValue {
        var parser = JSONParser(bytes: bytes, maximumDepth: maximumDepth)
        parser.skipSpace()
        let value = try parser.value(depth: 0)
        parser.skipSpace()
        guard parser.index == bytes.count else { throw parser.error("there is text after the end of the document") }
        return value
    }

    /// The line, from 1, of the value at a JSON pointer (RFC 6901) in a document, or of the innermost value on the way to it.
    package static func line(of pointer: String, in bytes: [UInt8], maximumDepth: Int = 64) -> Int {
        var parser = JSONParser(bytes: bytes, maximumDepth: maximumDepth)
        parser.sought = Array(pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst())
        parser.skipSpace()
        parser.found = parser.index
        // After an error, what was found before it counts.
        _ = try? parser.value(depth: 0)
        return parser.error("", at: parser.found).line
    }

    /// Reads a member or an element. Its place, at `start`, is kept if it is on the way to the sought value.
    private mutating func child(_ token: @autoclosure () -> String, at start: Int, depth: Int) throws(JSONError)
        -> JSONValue
    {
        guard depth == foundCount, depth < sought.count, sought[depth] == JSONPointer.escape(token()) else {
            return try value(depth: depth + 1)
        }
        foundCount += 1
        found = start
        let value = try value(depth: depth + 1)
        sought = []
        return value
    }

    private init(bytes: [UInt8], maximumDepth: Int) {
        self.bytes = bytes
        self.maximumDepth = maximumDepth
    }

    private var current: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
        guard depth <= maximumDepth else { throw error("the nesting is deeper than \(maximumDepth)") }
        switch current {
        case UInt8(ascii: "{"): return .object(try object(depth: depth))
        case UInt8(ascii: "["): return .array(try array(depth: depth))
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case let byte? where byte == UInt8(ascii: "-") || byte &- UInt8(ascii: "0") < 10: return try number()
        case nil: throw error("a value is missing at the end of the document")
        default: throw error("this character cannot begin a value")
        }
    }

    private mutating func object(depth: Int) throws(JSONError) -> JSONObject {
        index += 1
        var members: [JSONObject.Member] = []
        var names: Set<String> = []
        skipSpace()
        if current == UInt8(ascii: "}") {
            index += 1
            return JSONObject()
        }
        while true {
            guard current == UInt8(ascii: "\"") else { throw error("a member name in double quotes is expected") }
            let start = index
            let name = try string()
            guard !isKnown(name, among: members, &names) else {
                throw error("the member \"\(name.prefix(100))\" is there twice", at: start)
            }
            skipSpace()
            guard current == UInt8(ascii: ":") else { throw error("a colon is expected after a member name") }
            index += 1
            skipSpace()
            members.append(JSONObject.Member(name: name, value: try child(name, at: start, depth: depth)))
            skipSpace()
            switch current {
            case UInt8(ascii: ","):
                index += 1
                skipSpace()
            case UInt8(ascii: "}"):
                index += 1
                return JSONObject(members)
            default: throw error("a comma or a closing brace is expected")
            }
        }
    }

    /// Whether there is a member with that name. Few names are compared one by one; many are looked up in a set, because the
    /// peer decides how many there are.
    private func isKnown(_ name: String, among members: [JSONObject.Member], _ names: inout Set<String>) -> Bool {
        guard members.count >= 16 else { return members.contains { $0.name == name } }
        if names.isEmpty { names = Set(members.map(\.name)) }
        return !names.insert(name).inserted
    }

    private mutating func array(depth: Int) throws(JSONError) -> [JSONValue] {
        index += 1
        var items: [JSONValue] = []
        skipSpace()
        if current == UInt8(ascii: "]") {
            index += 1
            return []
        }
        while true {
            items.append(try child(String(items.count), at: index, depth: depth))
            skipSpace()
            switch current {
            case UInt8(ascii: ","):
                index += 1
                skipSpace()
            case UInt8(ascii: "]"):
                index += 1
                return items
            default: throw error("a comma or a closing bracket is expected")
            }
        }
    }

    private mutating func string() throws(JSONError) -> String {
        let start = index
        index += 1
        let runStart = index
        while index < bytes.count, bytes[index] != UInt8(ascii: "\""), bytes[index] != UInt8(ascii: "\\"),
            bytes[index] >= 0x20
        {
            index += 1
        }
        if index < bytes.count, bytes[index] == UInt8(ascii: "\"") {
            index += 1
            return try text(bytes[runStart..<(index - 1)], start)
        }
        var decoded = Array(bytes[runStart..<index])
        while let byte = current {
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return try text(decoded[...], start)
            case UInt8(ascii: "\\"): try escape(&decoded)
            case 0..<0x20: throw error("a control character in a string must be escaped", at: index - 1)
            default: decoded.append(byte)
            }
        }
        throw error("the string is not terminated", at: start)
    }

    private func text(_ bytes: ArraySlice<UInt8>, _ start: Int) throws(JSONError) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw error("the string is not UTF-8", at: start)
        }
        return text
    }

    private mutating func escape(_ decoded: inout [UInt8]) throws(JSONError) {
        guard let byte = current else { throw error("the string is not terminated") }
        index += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): decoded.append(byte)
        case UInt8(ascii: "b"): decoded.append(0x08)
        case UInt8(ascii: "f"): decoded.append(0x0C)
        case UInt8(ascii: "n"): decoded.append(0x0A)
        case UInt8(ascii: "r"): decoded.append(0x0D)
        case UInt8(ascii: "t"): decoded.append(0x09)
        case UInt8(ascii: "u"):
            let start = index - 2
            var code = try hexadecimal()
            if code & 0xFC00 == 0xD800, current == UInt8(ascii: "\\"), index + 1 < bytes.count,
                bytes[index + 1] == UInt8(ascii: "u")
            {
                index += 2
                let low = try hexadecimal()
                guard low & 0xFC00 == 0xDC00 else { throw error("unpaired surrogate", at: start) }
                code = 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF)
            }
            guard let scalar = Unicode.Scalar(code) else {
                throw error("unpaired surrogate", at: start)
            }
            decoded.append(contentsOf: String(scalar).utf8)
        default: throw error("unknown escape", at: index - 2)
        }
    }

    private mutating func hexadecimal() throws(JSONError) -> UInt32 {
        guard index + 4 <= bytes.count else { throw error("four hexadecimal digits are expected") }
        var value: UInt32 = 0
        for _ in 0..<4 {
            let byte = bytes[index]
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: throw error("four hexadecimal digits are expected")
            }
            value = value << 4 | UInt32(digit)
            index += 1
        }
        return value
    }

    private mutating func number() throws(JSONError) -> JSONValue {
        let start = index
        if current == UInt8(ascii: "-") { index += 1 }
        let leading = current
        let integerStart = index
        skipDigits()
        guard index > integerStart else { throw error("a digit is expected") }
        guard leading != UInt8(ascii: "0") || index == integerStart + 1 else {
            throw error("a number must not have leading zeros", at: start)
        }
        var isInteger = true
        if current == UInt8(ascii: ".") {
            isInteger = false
            index += 1
            let fraction = index
            skipDigits()
            guard index > fraction else { throw error("a digit is expected after the point") }
        }
        if current == UInt8(ascii: "e") || current == UInt8(ascii: "E") {
            isInteger = false
            index += 1
            if current == UInt8(ascii: "+") || current == UInt8(ascii: "-") { index += 1 }
            let exponent = index
            skipDigits()
            guard index > exponent else { throw error("a digit is expected in the exponent") }
        }
        guard index - start <= 64 else { throw error("the number has more than 64 characters", at: start) }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        if isInteger, let integer = Int64(text) { return .integer(integer) }
        guard let number = Double(text), number.isFinite else { throw error("the number is out of range", at: start) }
        return .number(number)
    }

    private mutating func skipDigits() {
        while index < bytes.count, bytes[index] &- UInt8(ascii: "0") < 10 { index += 1 }
    }

    private mutating func literal(_ text: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        let end = index + text.utf8CodeUnitCount
        guard end <= bytes.count, bytes[index..<end].elementsEqual(text.description.utf8) else {
            throw error("expected true, false or null")
        }
        index = end
        return value
    }

    private mutating func skipSpace() {
        while index < bytes.count,
            bytes[index] == 0x20 || bytes[index] == 0x0A || bytes[index] == 0x0D || bytes[index] == 0x09
        {
            index += 1
        }
    }

    private func error(_ reason: String, at offset: Int? = nil) -> JSONError {
        let offset = Swift.min(offset ?? index, bytes.count)
        let before = bytes[..<offset]
        let line = before.reduce(into: 1) { if $1 == 0x0A { $0 += 1 } }
        let column = offset - (before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0) + 1
        return JSONError(reason: reason, offset: offset, line: line, column: column)
    }
}
