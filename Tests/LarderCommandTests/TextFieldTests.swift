import TestSupport
import Testing

@testable import LarderCommand

@Suite("Command: keys", .oneMinute)
struct TextFieldTests {
    private func inputs(_ keys: [UInt8]) -> [TextField.Input] {
        var field = TextField()
        return field.typed(keys)
    }

    @Test func `characters are added and removed whole`() {
        #expect(inputs(Array("né".utf8)) == [.text("n"), .text("né")])
        #expect(inputs(Array("né".utf8) + [0x7f, 0x08, 0x7f]) == [.text("n"), .text("né"), .text("n"), .text("")])
        #expect(inputs(Array("ab".utf8) + [0x15] + Array("c".utf8)).suffix(2) == [.text(""), .text("c")])
        // A byte of no character does not stay in front of the next keys.
        #expect(inputs([0xff, 0xff, 0xff, 0xff] + Array("a".utf8)).last == .text("a"))
    }

    @Test func `a character or a key may arrive in parts`() {
        var field = TextField()
        let bytes = Array("é".utf8)
        #expect(field.typed([bytes[0]]).isEmpty && field.typed([bytes[1]]) == [.text("é")])
        #expect(field.typed([0x1b]).isEmpty && field.typed([0x5b]).isEmpty)
        #expect(field.typed(Array("B".utf8)) == [.scroll(1)])
    }

    @Test func `lines of a pipe are whole, and a line without an end does not grow`() {
        var field = TextField()
        #expect(field.piped(Array("ab\nc".utf8)) == [.text("ab")])
        #expect(field.piped(Array("d\n\n".utf8)) == [.text("cd"), .text("")])
        for _ in 0..<3 { #expect(field.piped([UInt8](repeating: 0x61, count: 4_000)).isEmpty) }
        #expect(field.piped([0x0a]) == [.text(String(repeating: "a", count: 4_096))])
        #expect(field.piped(Array("e".utf8)).isEmpty && field.pipeEnded() == [.text("e"), .end])
    }

    @Test func `arrows and pages scroll, Ctrl-D ends, and other keys mean nothing`() {
        func keys(_ texts: String...) -> [UInt8] { texts.flatMap { [0x1b] + Array($0.utf8) } }
        #expect(inputs(keys("[A", "OB", "[5~", "[6~")) == [.scroll(-1), .scroll(1), .scroll(-10), .scroll(10)])
        #expect(inputs(keys("[3~", "[1;5C", "x") + [0x0d, 0x09, 0x04]) == [.end])
    }
}
