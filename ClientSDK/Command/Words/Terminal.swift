import Foundation
import Larder
import LarderCoding

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Where the command speaks: what was asked for on standard output, everything else on standard error.
struct Terminal: Sendable {
    /// Whether a person looks at the output.
    let isTerminal: Bool
    /// Whether words may have colours.
    let hasColour: Bool
    /// Whether programs read the output.
    let isJSON: Bool

    init(_ arguments: Arguments, environment: [String: String]) {
        isJSON = arguments.isJSON
        isTerminal = isatty(STDOUT_FILENO) == 1 && !arguments.isJSON
        hasColour =
            switch arguments.colour {
            case .always: true
            case .never: false
            case .auto: isTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
            }
    }

    /// Columns and rows; 80 × 24 where nobody knows.
    var size: (columns: Int, rows: Int) {
        var window = winsize()
        guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(window.ws_col), Int(window.ws_row))
    }

    /// Writes text as it is. Where nobody reads it any more, the process ends as others do (SIGPIPE).
    func write(_ text: String) { Self.write(text, to: STDOUT_FILENO) }

    /// Writes a line.
    func line(_ text: String = "") { write(text + "\n") }

    /// Writes a JSON document in one line.
    func json(_ value: JSONValue) {
        var writer = JSONWriter()
        writer.value(value)
        line(String(decoding: writer.bytes, as: UTF8.self))
    }

    /// Says something beside what was asked for, in one line.
    func note(_ text: String) { Self.write("larder: \(TextWidth.clean(text))\n", to: STDERR_FILENO) }

    /// Says in one line what went wrong, and ends the process.
    static func fail(_ text: String, code: Int32) -> Never {
        write("larder: \(TextWidth.clean(text))\n", to: STDERR_FILENO)
        exit(code)
    }

    private static func write(_ text: String, to descriptor: Int32) {
        let bytes = Array(text.utf8)
        var offset = 0
        while offset < bytes.count {
            let count = unsafe bytes[offset...].withUnsafeBytes { raw in
                unsafe systemWrite(descriptor, raw.baseAddress, raw.count)
            }
            if count < 0, errno == EINTR { continue }
            // There is nobody left to tell.
            guard count > 0 else { return }
            offset += count
        }
    }

    // MARK: Colours

    enum Colour: String {
        case dim = "2"
        case bold = "1"
        case red = "31"
        case green = "32"
        case yellow = "33"
        case cyan = "36"
    }

    /// Words in a colour, where there may be any.
    func paint(_ text: String, _ colour: Colour) -> String {
        hasColour ? "\u{1b}[\(colour.rawValue)m\(text)\u{1b}[0m" : text
    }

    /// A badge: green where it is fresh, yellow where it is stale.
    func paint(_ badge: Badge, _ text: String) -> String {
        if badge.failure != nil || badge.freshness == .missing { return paint(text, .red) }
        return paint(text, badge.freshness.isFresh ? .green : .yellow)
    }
}

/// write(2); inside `Terminal` the name is its own.
private func systemWrite(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int) -> Int {
    unsafe write(descriptor, start, count)
}
