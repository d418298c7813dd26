import Dispatch

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Ctrl-C and SIGTERM while something is followed: the view ends, and the command with it, in order.
final class Interrupt {
    private let sources: [any DispatchSourceSignal]

    /// Takes both signals over until it is released.
    init(_ body: @escaping @Sendable () -> Void) {
        sources = [SIGINT, SIGTERM].map { number in
            // Otherwise the system ends the process before anybody is told.
            _ = signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler(handler: body)
            source.resume()
            return source
        }
    }

    deinit {
        for source in sources { source.cancel() }
        for number in [SIGINT, SIGTERM] { _ = signal(number, SIG_DFL) }
    }
}
