import Glibc

/// Output on the terminal.
enum Terminal {
    static func print(_ text: String) {
        Swift.print(text)
        // Unbuffered, also into a pipe: scripts wait for the line with the address.
        fflush(nil)
    }

    /// Prints a warning of one line.
    static func warn(_ message: String) {
        var line = Array("larder-server: \(message)\n".utf8)
        _ = unsafe write(STDERR_FILENO, &line, line.count)
    }

    /// Prints an error of one line and exits.
    static func fail(_ message: String, code: Int32) -> Never {
        warn(message)
        exit(code)
    }
}
