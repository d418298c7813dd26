/// The alternate screen of a terminal, for a view that is redrawn. It does nothing if the output is no terminal.
final class Screen {
    private let terminal: Terminal
    /// The last frame is printed again when the view ends.
    private var last: [String] = []

    init(_ terminal: Terminal) {
        self.terminal = terminal
        if terminal.isTerminal { terminal.write("\u{1b}[?1049h\u{1b}[?25l") }
    }

    deinit {
        guard terminal.isTerminal else { return }
        terminal.write("\u{1b}[?1049l\u{1b}[?25h")
        for line in last { terminal.line(line) }
    }

    /// Replaces the frame by these lines, of which those that have no room are left out.
    func show(_ lines: [String]) {
        guard terminal.isTerminal else { return }
        last = lines
        let frame = lines.prefix(terminal.size.rows - 1).map { terminal.printable($0) + "\u{1b}[K" }.joined(
            separator: "\r\n"
        )
        terminal.write("\u{1b}[H" + frame + "\u{1b}[J")
    }
}
