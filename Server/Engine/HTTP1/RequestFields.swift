package import LarderHTTP

/// The header fields of a request: an index over the bytes of its head, so that reading them costs no dictionary and no
/// string until one is asked for.
package struct RequestFields: Sendable {
    struct Line: Sendable {
        let name: Range<Int32>
        let value: Range<Int32>
    }

    let head: [UInt8]
    let lines: [Line]

    /// The value of the first field line with that name.
    package subscript(name: FieldName) -> String? {
        guard let line = lines.first(where: { isNamed($0, name.canonical) }) else { return nil }
        return text(line.value)
    }

    /// The values of all field lines with that name as one list (RFC 9110 §5.3), or nil if there are none.
    package func combined(_ name: FieldName) -> String? {
        let values = lines.filter { isNamed($0, name.canonical) }.map { text($0.value) }
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// Where in the head the value of the first field line with that name stands.
    ///
    /// - Parameter name: in lower case.
    package func range(of name: StaticString) -> Range<Int>? {
        let length = name.utf8CodeUnitCount
        for line in lines where line.name.count == length {
            let start = Int(line.name.lowerBound)
            var index = 0
            while index < length, unsafe Self.lowercased(head[start + index]) == name.utf8Start[index] { index += 1 }
            if index == length { return Int(line.value.lowerBound)..<Int(line.value.upperBound) }
        }
        return nil
    }

    /// The number of field lines with that name.
    func count(of name: FieldName) -> Int { lines.count { isNamed($0, name.canonical) } }

    /// All field lines in order, as they were written.
    package var all: [(name: String, value: String)] { lines.map { (text($0.name), text($0.value)) } }

    private func text(_ range: Range<Int32>) -> String {
        String(decoding: head[Int(range.lowerBound)..<Int(range.upperBound)], as: UTF8.self)
    }

    private func isNamed(_ line: Line, _ canonical: String) -> Bool {
        let utf8 = canonical.utf8
        guard line.name.count == utf8.count else { return false }
        var index = Int(line.name.lowerBound)
        for byte in utf8 {
            guard Self.lowercased(head[index]) == byte else { return false }
            index += 1
        }
        return true
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }
}
