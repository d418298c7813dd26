/// Finds the end of a head in bytes in any pieces, and rejects bare CR and bare LF immediately (RFC 9112 §2.2): line ends that
/// recipients interpret differently allow request smuggling.
package struct HeadScanner: Sendable {
    private enum State: Sendable {
        /// Empty lines before the head are skipped.
        case before
        case beforeLF
        case line
        case lineLF
        case lineStart
        case endLF
    }

    private var state: State
    /// The offset of the head, after empty lines.
    package private(set) var start = 0
    /// The number of scanned bytes.
    package private(set) var scanned = 0
    /// The length of the start line, once its end was found.
    package private(set) var lineCount: Int?

    /// - Parameter skipsEmptyLines: true for requests (RFC 9112 §2.2).
    package init(skipsEmptyLines: Bool) { state = skipsEmptyLines ? .before : .line }

    package enum Outcome {
        case incomplete
        /// The end of the head without its empty line, which takes four bytes with the last line's end.
        case head(Range<Int>)
        case malformed(String)
    }

    /// Scans the bytes that were not scanned yet. `bytes` begins at the same byte as the last time.
    package mutating func scan(_ bytes: Span<UInt8>) -> Outcome {
        var state = self.state
        var index = scanned
        defer {
            self.state = state
            scanned = index
        }
        while index < bytes.count {
            if case .line = state {
                index = ByteSearch.firstControl(in: bytes, from: index)
                guard index < bytes.count else { break }
            }
            let byte = bytes[index]
            index += 1
            switch state {
            case .line:
                if byte == 0x0D { state = .lineLF } else if byte == 0x0A { return .malformed("a bare LF") }
            case .lineLF:
                guard byte == 0x0A else { return .malformed("a bare CR") }
                if lineCount == nil { lineCount = index - 2 - start }
                state = .lineStart
            case .lineStart:
                if byte == 0x0D {
                    state = .endLF
                } else if byte == 0x0A {
                    return .malformed("a bare LF")
                } else {
                    state = .line
                }
            case .endLF:
                guard byte == 0x0A else { return .malformed("a bare CR") }
                return .head(start..<(index - 4))
            case .before:
                if byte == 0x0D {
                    state = .beforeLF
                } else if byte == 0x0A {
                    return .malformed("a bare LF")
                } else {
                    start = index - 1
                    state = .line
                }
            case .beforeLF:
                guard byte == 0x0A else { return .malformed("a bare CR") }
                start = index
                state = .before
            }
        }
        return .incomplete
    }
}
