package import LarderHTTP

/// The field lines of a head (RFC 9112 §5): an index into its bytes. Reading them needs no dictionary, and a string only for a
/// requested value.
package struct FieldLines: Sendable, Hashable {
    package struct Line: Sendable, Hashable {
        package let name: Range<Int32>
        package let value: Range<Int32>
    }

    package let head: [UInt8]
    package let lines: [Line]
    /// A bit for the length of each name: most searches for a field that is not there end here.
    private let nameLengths: UInt64

    /// Parses the field lines of a complete head without its empty line.
    ///
    /// - Parameters:
    ///   - start: the offset after the start line and its line end.
    ///   - acceptsFolds: whether a continuation line (RFC 9112 §5.2) is accepted; it becomes a line with an empty name.
    package init(_ head: [UInt8], from start: Int, acceptsFolds: Bool = false) throws(Rejection) {
        var lines: [Line] = []
        lines.reserveCapacity(12)
        var start = start
        while start < head.count {
            var colon = start
            while colon < head.count, isTokenByte(head[colon]) { colon += 1 }
            let isFold =
                acceptsFolds && colon == start && !lines.isEmpty && (head[start] == 0x20 || head[start] == 0x09)
            guard isFold || (colon > start && colon < head.count && head[colon] == UInt8(ascii: ":")) else {
                throw Rejection(.badRequest, "A field line does not begin with a name and a colon.")
            }
            var valueStart = isFold ? start : colon + 1
            var end = ByteSearch.firstControl(in: head.span, from: valueStart)
            while end < head.count, head[end] != 0x0D {
                guard head[end] == 0x09 else {
                    throw Rejection(.badRequest, "A field value has a control character.")
                }
                end = ByteSearch.firstControl(in: head.span, from: end + 1)
            }
            let lineEnd = end
            while valueStart < end, head[valueStart] == 0x20 || head[valueStart] == 0x09 { valueStart += 1 }
            while end > valueStart, head[end - 1] == 0x20 || head[end - 1] == 0x09 { end -= 1 }
            lines.append(Line(name: Int32(start)..<Int32(colon), value: Int32(valueStart)..<Int32(end)))
            start = lineEnd + 2
        }
        self.init(head: head, lines: lines)
    }

    static func endOfLine(_ head: [UInt8], from start: Int) -> Int {
        ByteSearch.firstCR(in: head.span, from: start)
    }

    /// The value of the first field line with that name.
    package subscript(name: FieldName) -> String? {
        guard mayHave(name.canonical.utf8.count), let line = lines.first(where: { isNamed($0, name.canonical) }) else {
            return nil
        }
        return text(line.value)
    }

    /// The values of all field lines with that name as one list (RFC 9110 §5.3), or nil if there are none.
    package func combined(_ name: FieldName) -> String? {
        guard mayHave(name.canonical.utf8.count) else { return nil }
        // Most fields have one line or none: no list of the values is made for them.
        var combined: String?
        for line in lines where isNamed(line, name.canonical) {
            let value = text(line.value)
            guard combined != nil else {
                combined = value
                continue
            }
            combined?.append(", ")
            combined?.append(value)
        }
        return combined
    }

    /// The range in the head of the value of the first field line with that name.
    ///
    /// - Parameter name: in lower case.
    package func range(of name: StaticString) -> Range<Int>? {
        guard mayHave(name.utf8CodeUnitCount) else { return nil }
        for line in lines where isNamed(line, name) {
            return Int(line.value.lowerBound)..<Int(line.value.upperBound)
        }
        return nil
    }

    /// Whether a line has that name.
    ///
    /// - Parameter name: in lower case.
    package func isNamed(_ line: Line, _ name: StaticString) -> Bool {
        let length = name.utf8CodeUnitCount
        guard line.name.count == length else { return false }
        let start = Int(line.name.lowerBound)
        var index = 0
        while index < length, unsafe Self.lowercased(head[start + index]) == name.utf8Start[index] { index += 1 }
        return index == length
    }

    /// The field lines without those with certain names, behind the same start line.
    package func removing(_ isRemoved: (Line) -> Bool) -> FieldLines {
        var kept = Array(head[..<Self.endOfLine(head, from: 0)])
        var lines: [Line] = []
        for line in self.lines where !isRemoved(line) {
            kept.append(contentsOf: [0x0D, 0x0A])
            let offset = Int32(kept.count) - line.name.lowerBound
            kept.append(contentsOf: head[Int(line.name.lowerBound)..<Int(line.value.upperBound)])
            lines.append(
                Line(
                    name: (line.name.lowerBound + offset)..<(line.name.upperBound + offset),
                    value: (line.value.lowerBound + offset)..<(line.value.upperBound + offset)
                )
            )
        }
        return FieldLines(head: kept, lines: lines)
    }

    private init(head: [UInt8], lines: [Line]) {
        self.head = head
        self.lines = lines
        nameLengths = lines.reduce(0) { $0 | Self.bit(forLength: $1.name.count) }
    }

    private func mayHave(_ length: Int) -> Bool { nameLengths & Self.bit(forLength: length) != 0 }

    /// Lengths from 63 share a bit.
    private static func bit(forLength length: Int) -> UInt64 { 1 << UInt64(min(length, 63)) }

    /// The field lines with each continuation line joined to its field with a space (RFC 9112 §5.2).
    func unfolded() -> FieldLines {
        guard lines.contains(where: { $0.name.isEmpty }) else { return self }
        var joined = Array(head[..<Self.endOfLine(head, from: 0)])
        var lines: [Line] = []
        for line in self.lines {
            let value = head[Int(line.value.lowerBound)..<Int(line.value.upperBound)]
            if line.name.isEmpty, let last = lines.popLast() {
                joined.append(0x20)
                joined.append(contentsOf: value)
                lines.append(Line(name: last.name, value: last.value.lowerBound..<Int32(joined.count)))
            } else {
                joined.append(contentsOf: [0x0D, 0x0A])
                let start = Int32(joined.count)
                joined.append(contentsOf: head[Int(line.name.lowerBound)..<Int(line.name.upperBound)])
                joined.append(contentsOf: [0x3A, 0x20])
                let valueStart = Int32(joined.count)
                joined.append(contentsOf: value)
                let nameEnd = start + Int32(line.name.count)
                lines.append(Line(name: start..<nameEnd, value: valueStart..<Int32(joined.count)))
            }
        }
        return FieldLines(head: joined, lines: lines)
    }

    /// The bytes of a line, from its name to the end of its value.
    package func bytes(of line: Line) -> ArraySlice<UInt8> {
        head[Int(line.name.lowerBound)..<Int(line.value.upperBound)]
    }

    package func value(of line: Line) -> ArraySlice<UInt8> {
        head[Int(line.value.lowerBound)..<Int(line.value.upperBound)]
    }

    /// The number of field lines with that name.
    ///
    /// - Parameter name: in lower case.
    package func count(of name: StaticString) -> Int {
        guard mayHave(name.utf8CodeUnitCount) else { return 0 }
        return lines.count { isNamed($0, name) }
    }

    /// All field lines in order, as they were written.
    package var all: [(name: String, value: String)] { lines.map { (text($0.name), text($0.value)) } }

    /// A part of the head; bytes that are not UTF-8 are replaced.
    package func text(_ range: Range<Int32>) -> String {
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
