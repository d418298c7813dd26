import Dispatch
import Glibc

/// Handles SIGINT and SIGTERM while a view follows changes, so that the command ends normally.
final class Interrupt {
    private let sources: [any DispatchSourceSignal]

    /// Calls `body` for each signal until it is released.
    init(_ body: @escaping @Sendable () -> Void) {
        sources = [SIGINT, SIGTERM].map { number in
            // The default action would end the process before the handler runs.
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
