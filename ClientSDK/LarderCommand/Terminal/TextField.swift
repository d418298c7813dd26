import Foundation
import Glibc
import LarderArguments

/// What a person does in a field: keys of a terminal, or lines of a pipe.
struct TextField {
    enum Input: Sendable, Hashable {
        /// The text of the field from now on.
        case text(String)
        /// Lines to move down, or up if negative.
        case scroll(Int)
        case end
    }

    /// The bytes of a line of a pipe that are read; the rest of a longer line is skipped.
    private static let lineMaximum = 4_096

    private var text = ""
    /// Bytes of a character, a key or a line that has not arrived whole.
    private var pending: [UInt8] = []

    /// What keys mean: text, backspace, Ctrl-U (nothing is left), the arrows and pages up and down, and Ctrl-D (the end).
    mutating func typed(_ bytes: some Sequence<UInt8>) -> [Input] {
        var inputs: [Input] = []
        for byte in bytes {
            pending.append(byte)
            guard let input = key() else { continue }
            pending = []
            inputs += input
        }
        return inputs
    }

    /// The meaning of the pending bytes: nil if there are more to come, none if they mean nothing here.
    private mutating func key() -> [Input]? {
        switch pending {
        case [0x1b], [0x1b, UInt8(ascii: "[")], [0x1b, UInt8(ascii: "O")]: return nil
        case [0x04]: return [.end]
        case [0x7f], [0x08]:
            guard text.popLast() != nil else { return [] }
        case [0x15]: text = ""
        case let key where key.count > 2 && key[0] == 0x1b:
            // A control sequence (ECMA-48 §5.4) ends with a byte from `@` on.
            guard let last = key.last, last >= 0x40 else { return nil }
            let moves = ["A": -1, "B": 1, "5~": -10, "6~": 10]
            return moves[String(decoding: key.dropFirst(2), as: UTF8.self)].map { [.scroll($0)] } ?? []
        case let key where key[0] < 0x20: return []
        default:
            guard let typed = String(validating: pending, as: UTF8.self) else { return pending.count < 4 ? nil : [] }
            text += typed
        }
        return [.text(text)]
    }

    /// The lines of a pipe: each is the text of the field.
    mutating func piped(_ bytes: some Sequence<UInt8>) -> [Input] {
        var inputs: [Input] = []
        for byte in bytes {
            guard byte == UInt8(ascii: "\n") else {
                if pending.count < Self.lineMaximum { pending.append(byte) }
                continue
            }
            inputs.append(line())
        }
        return inputs
    }

    /// The end of a pipe, after a last line without a line break.
    mutating func pipeEnded() -> [Input] { (pending.isEmpty ? [] : [line()]) + [.end] }

    private mutating func line() -> Input {
        defer { pending = [] }
        return .text(String(decoding: pending, as: UTF8.self))
    }

    /// Whether keys are read one by one: standard input is a terminal, and so is the output.
    static func readsKeys(_ terminal: Terminal) -> Bool { terminal.isTerminal && isatty(STDIN_FILENO) == 1 }

    /// Reads standard input on a thread of its own until it ends.
    static func read(keys: Bool, _ receive: @escaping @Sendable (Input) -> Void) {
        let thread = Thread {
            var field = TextField()
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = unsafe Glibc.read(STDIN_FILENO, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                let bytes = buffer[..<count]
                for input in keys ? field.typed(bytes) : field.piped(bytes) { receive(input) }
            }
            for input in keys ? [.end] : field.pipeEnded() { receive(input) }
        }
        thread.name = "larder input"
        thread.start()
    }
}

/// Keeps the terminal from collecting and printing keys until it is released.
final class RawInput {
    private var usual = termios()

    init() {
        _ = unsafe tcgetattr(STDIN_FILENO, &usual)
        var raw = usual
        raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
        _ = unsafe tcsetattr(STDIN_FILENO, TCSANOW, &raw)
    }

    deinit { _ = unsafe tcsetattr(STDIN_FILENO, TCSANOW, &usual) }
}
