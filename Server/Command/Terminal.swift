#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Words for the person at the terminal.
enum Terminal {
    static func print(_ text: String) {
        Swift.print(text)
        // At once, also into a pipe: scripts wait for the line with the address.
        fflush(nil)
    }

    /// Says in one line what may surprise somebody.
    static func warn(_ message: String) {
        var line = Array("larder-server: \(message)\n".utf8)
        _ = unsafe write(STDERR_FILENO, &line, line.count)
    }

    /// Says in one line what went wrong, and ends the process.
    static func fail(_ message: String, code: Int32) -> Never {
        var line = Array("larder-server: \(message)\n".utf8)
        _ = unsafe write(STDERR_FILENO, &line, line.count)
        exit(code)
    }
}
