import Foundation
import Larder

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

extension Terminal {
    /// The time that a terminal has to say what it can draw. One at the other end of a slow connection gets blocks.
    private static let answerTime: Duration = .milliseconds(300)
    private static let answerMaximum = 1_024

    /// What this terminal can draw: by the environment if it says so, otherwise by the terminal's own answer. Only a terminal is asked,
    /// and for at most 0.3 s.
    func graphics(_ uptime: any MonotonicClock) -> TerminalGraphics {
        guard isTerminal, hasColor else { return .blocks }
        return statedGraphics ?? asked(uptime) ?? .blocks
    }

    /// Writes the question and reads the answer from standard input; nil if there is none.
    private func asked(_ uptime: any MonotonicClock) -> TerminalGraphics? {
        var saved = termios()
        // A process in the background would be stopped by the change of the terminal's settings.
        guard isatty(STDIN_FILENO) == 1, tcgetpgrp(STDIN_FILENO) == getpgrp(),
            unsafe tcgetattr(STDIN_FILENO, &saved) == 0
        else { return nil }
        var raw = saved
        // The answer has no line break, and must not be shown.
        // Ctrl-C is read with the answer, so that the settings are restored before it ends the process.
        raw.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG)
        guard unsafe tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0 else { return nil }
        // What arrives later than that is dropped with the rest of the input.
        defer { _ = unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved) }
        write(TerminalGraphics.question)
        let end = uptime.uptime + Self.answerTime
        var answer: [UInt8] = []
        while answer.count < Self.answerMaximum {
            if let graphics = TerminalGraphics(answer: answer) { return graphics }
            let left = (end - uptime.uptime).nanosecondsSaturating / 1_000_000
            guard left > 0 else { return nil }
            var wanted = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            let count = unsafe poll(&wanted, 1, Int32(left))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            var piece = [UInt8](repeating: 0, count: 256)
            let length = unsafe piece.withUnsafeMutableBytes { raw in
                unsafe read(STDIN_FILENO, raw.baseAddress, raw.count)
            }
            guard length > 0 else { return nil }
            answer += piece[..<length]
            if piece[..<length].contains(3) {
                _ = unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved)
                raise(SIGINT)
            }
        }
        return nil
    }

    /// The size of a character cell in pixels; 10 × 20 if the terminal does not say.
    var cell: (width: Int, height: Int) {
        var window = winsize()
        guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0,
            window.ws_xpixel >= window.ws_col, window.ws_ypixel >= window.ws_row
        else { return (10, 20) }
        return (Int(window.ws_xpixel / window.ws_col), Int(window.ws_ypixel / window.ws_row))
    }
}
