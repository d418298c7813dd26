import Foundation
import Glibc
import Larder
import LarderCoding

/// The output of the command: results on standard output, notes and errors on standard error.
struct Terminal: Sendable {
    /// Whether standard output is a terminal and the output is not JSON.
    let isTerminal: Bool
    /// Whether the output is coloured.
    let hasColor: Bool
    /// Whether the output is JSON.
    let isJSON: Bool

    init(_ arguments: Arguments, environment: [String: String]) {
        isJSON = arguments.isJSON
        isTerminal = isatty(STDOUT_FILENO) == 1 && !arguments.isJSON
        hasColor =
            switch arguments.color {
            case .always: true
            case .never: false
            case .auto: isTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
            }
    }

    /// Columns and rows; 80 × 24 if the size is unknown.
    var size: (columns: Int, rows: Int) {
        var window = winsize()
        guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(window.ws_col), Int(window.ws_row))
    }

    /// Writes text without a line break. If the reader has closed the pipe, the process ends by SIGPIPE.
    func write(_ text: String) { Self.write(text, to: STDOUT_FILENO) }

    /// Writes a line. Text of a server cannot control the terminal: only the colours of `paint` are kept. JSON is written as it is.
    func line(_ text: String = "") { write((isJSON ? text : printable(text)) + "\n") }

    /// Writes a JSON document and a line break.
    func json(_ value: JSONValue) { line(value.line) }

    /// Writes a result as a JSON document or as a line.
    func result(_ members: [(String, JSONValue?)], _ text: String) {
        if isJSON { json(.members(members)) } else { line(text) }
    }

    /// Writes a one-line message to standard error.
    func note(_ text: String) { Self.write("larder: \(TextWidth.clean(text))\n", to: STDERR_FILENO) }

    /// Writes a one-line error to standard error and exits.
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
            guard count > 0 else {
                let reason = unsafe String(cString: strerror(errno))
                if descriptor == STDOUT_FILENO { fail("standard output cannot be written: \(reason).", code: 1) }
                // Standard error is closed as well.
                return
            }
            offset += count
        }
    }

    // MARK: Colours

    enum Color: String, CaseIterable {
        case dim = "2"
        case bold = "1"
        case red = "31"
        case green = "32"
        case yellow = "33"
        case cyan = "36"
    }

    /// The text in a colour, if the output is coloured.
    func paint(_ text: String, _ color: Color) -> String {
        hasColor ? "\u{1b}[\(color.rawValue)m\(text)\u{1b}[0m" : text
    }

    /// The text with its control characters replaced, apart from the colours of `paint`.
    func printable(_ text: String) -> String {
        guard hasColor else { return TextWidth.clean(text) }
        let start = "\u{1b}["
        let colors = (Color.allCases.map(\.rawValue) + ["0"]).map { $0 + "m" }
        let parts = text.split(separator: start, omittingEmptySubsequences: false).map { String($0) }
        return parts.dropFirst().reduce(TextWidth.clean(parts[0])) { printed, part in
            let color = colors.first { part.hasPrefix($0) }
            let kept = color.map { start + $0 } ?? TextWidth.clean(start)
            return printed + kept + TextWidth.clean(String(part.dropFirst(color?.count ?? 0)))
        }
    }

    /// The badge of a snapshot: green if fresh, yellow if stale, red after a failure or if nothing is stored.
    func badge<Value>(_ snapshot: Snapshot<Value>, at now: WallTime) -> String {
        let text = snapshot.badge(at: now)
        if snapshot.refreshError != nil || snapshot.freshness == .missing { return paint(text, .red) }
        return paint(text, snapshot.freshness.isFresh ? .green : .yellow)
    }
}

/// write(2). `Terminal.write` hides the name inside the type.
private func systemWrite(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int) -> Int {
    unsafe write(descriptor, start, count)
}
