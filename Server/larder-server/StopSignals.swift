import Glibc

/// SIGTERM and SIGINT. The handler writes one byte into a pipe, which is async-signal-safe.
struct StopSignals {
    private struct Pipe: Sendable {
        let reader: Int32
        let writer: Int32
    }

    private static let pipe: Pipe = {
        var ends: [Int32] = [-1, -1]
        let result = unsafe Glibc.pipe(&ends)
        precondition(result == 0, "Creating the signal pipe failed.")
        return Pipe(reader: ends[0], writer: ends[1])
    }()

    /// Installs the handlers of both signals.
    init() {
        // Initialised now: a signal handler must not initialise a global.
        _ = Self.pipe
        for number in [SIGTERM, SIGINT] {
            _ = signal(number) { _ in
                var byte: UInt8 = 1
                _ = unsafe write(StopSignals.pipe.writer, &byte, 1)
            }
        }
    }

    /// Returns when a signal has arrived. It blocks its thread: nothing else in the process is asynchronous while the server runs, which has
    /// threads of its own.
    func wait() {
        var byte: UInt8 = 0
        while unsafe read(Self.pipe.reader, &byte, 1) != 1 {}
    }
}
