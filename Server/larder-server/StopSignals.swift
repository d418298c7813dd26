import Glibc

/// SIGTERM and SIGINT. The handler writes one byte into a pipe, which is async-signal-safe; a separate thread waits for that
/// byte.
struct StopSignals: Sendable {
    private struct Pipe: Sendable {
        let reader: Int32
        let writer: Int32
    }

    private static let pipe: Pipe = {
        var ends: [Int32] = [-1, -1]
        let result = systemPipe(&ends)
        precondition(result == 0, "Creating the signal pipe failed.")
        return Pipe(reader: ends[0], writer: ends[1])
    }()

    private final class Box {
        let body: () -> Void

        init(_ body: @escaping () -> Void) { self.body = body }
    }

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

    /// Returns when a signal has arrived.
    func wait() async {
        await withCheckedContinuation { continuation in
            // A separate thread, because the read blocks and the cooperative pool must not be blocked.
            let box = unsafe Unmanaged.passRetained(Box { continuation.resume() }).toOpaque()
            var thread = pthread_t()
            let result = unsafe pthread_create(
                &thread,
                nil,
                { argument in
                    var byte: UInt8 = 0
                    while unsafe read(StopSignals.pipe.reader, &byte, 1) != 1 {}
                    if let argument = unsafe argument {
                        unsafe Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
                    }
                    return nil
                },
                box
            )
            precondition(result == 0, "Starting the signal thread failed.")
        }
    }
}

/// pipe(2), which `StopSignals` shadows.
private func systemPipe(_ ends: inout [Int32]) -> Int32 { unsafe pipe(&ends) }
