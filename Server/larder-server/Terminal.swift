import Glibc

/// Output on the terminal.
enum Terminal {
    static func print(_ text: String) {
        Swift.print(text)
        // Unbuffered, also into a pipe: scripts wait for the line with the address.
        fflush(nil)
    }

    /// Prints a warning; each of its lines names the program.
    static func warn(_ message: String) {
        let lines = message.split(separator: "\n").map { "larder-server: \($0)\n" }
        var bytes = Array(lines.joined().utf8)
        _ = unsafe write(STDERR_FILENO, &bytes, bytes.count)
    }

    /// Prints an error and exits.
    static func fail(_ message: String, code: Int32) -> Never {
        warn(message)
        exit(code)
    }
}
