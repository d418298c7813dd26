import LarderEngine
import LarderHTTP
import LarderTime

/// The reply to a read that can be repeated for byte-identical requests until one of its dependencies changes, the session
/// ends, or the control plane can affect the exchange.
final class RepeatableRead: RepeatableReply {
    private let world: World
    private let path: ArraySlice<UInt8>
    private let dependencies: Dependencies
    private let stamp: UInt64
    private let session: SessionRow?
    private let sessionEndings: UInt64
    private let recorder: (any RepeatRecorder)?

    /// - Parameters:
    ///   - stamps: taken before the reply was looked up.
    ///   - sessionEndings: taken before the session was looked up.
    init(
        _ world: World,
        _ request: Request,
        _ session: SessionRow?,
        _ dependencies: Dependencies,
        _ prepared: PreparedResponse,
        extra: [UInt8],
        stamps: StampSnapshot,
        sessionEndings: UInt64
    ) {
        self.world = world
        self.session = session
        self.dependencies = dependencies
        self.sessionEndings = sessionEndings
        path = request.path
        stamp = stamps.value(of: dependencies)
        recorder = world.hooks.repeatRecorder(of: request, prepared, extra: extra, viewer: session?.user ?? 0)
    }

    func isCurrent() -> Bool {
        guard world.stamp.value(of: dependencies) == stamp, world.isUntouched(path) else { return false }
        guard let session else { return true }
        return world.authenticator.endings == sessionEndings
            && session.accessExpires.map { world.clock.now < $0 } ?? true
    }

    func wasRepeated(_ exchange: RepeatedExchange) { recorder?.record(exchange, at: world.clock.now) }
}
