/// Finds the lines of values in the text of a JSON document, for messages about it.
struct JSONLines {
    private let bytes: [UInt8]
    private var index = 0

    /// - Parameter bytes: a valid document.
    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The line, from 1, of the value at a JSON pointer (RFC 6901), or of the innermost value on the way to it.
    static func line(of pointer: String, in bytes: [UInt8]) -> Int {
        var lines = JSONLines(bytes)
        let end = lines.find(
            pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map { String($0) }
        )
        return bytes[..<end].reduce(into: 1) { if $1 == UInt8(ascii: "\n") { $0 += 1 } }
    }

    private mutating func find(_ tokens: [String]) -> Int {
        skipSpace()
        let start = index
        guard let token = tokens.first, index < bytes.count else { return start }
        let isObject = bytes[index] == UInt8(ascii: "{")
        guard isObject || bytes[index] == UInt8(ascii: "[") else { return start }
        index += 1
        var position = 0
        while true {
            skipSpace()
            guard index < bytes.count, bytes[index] != UInt8(ascii: "}"), bytes[index] != UInt8(ascii: "]") else {
                return start
            }
            let place = index
            var name = String(position)
            if isObject {
                skipValue()
                let text = String(decoding: bytes[(place + 1)..<(index - 1)], as: UTF8.self)
                name = text.replacing("~", with: "~0").replacing("/", with: "~1")
                skipSpace()
                index += 1
            }
            if name == token {
                let found = find(Array(tokens.dropFirst()))
                return tokens.count == 1 ? place : found
            }
            skipValue()
            skipSpace()
            if index < bytes.count, bytes[index] == UInt8(ascii: ",") { index += 1 }
            position += 1
        }
    }

    private mutating func skipSpace() {
        while index < bytes.count, [0x20, 0x0A, 0x0D, 0x09].contains(bytes[index]) { index += 1 }
    }

    private mutating func skipValue() {
        skipSpace()
        var depth = 0
        repeat {
            guard index < bytes.count else { return }
            switch bytes[index] {
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: "\""):
                index += 1
                while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
                    index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
                }
            default:
                // A number or a word ends before what cannot be part of it.
                while depth == 0, index + 1 < bytes.count, !Array(" \n\r\t,]}".utf8).contains(bytes[index + 1]) {
                    index += 1
                }
            }
            index += 1
        } while depth > 0
    }
}
