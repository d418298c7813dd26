import LarderEngine
import LarderHTTP
import LarderTime

/// The reply to a read that was answered before, as it holds for every request of the same bytes: until something changes that
/// it depends on, the session ends, or the control plane has a say in the exchange.
final class RepeatedRead: StandingReply {
    private let world: World
    private let path: ArraySlice<UInt8>
    private let dependencies: Dependencies
    private let stamp: UInt64
    private let session: SessionRow?
    private let sessionEndings: UInt64
    private let entry: Journal.Template

    /// - Parameters:
    ///   - stamps: as they were before the reply was found.
    ///   - sessionEndings: as they were before the session was.
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
        entry = Journal.Template(request, prepared, extra: extra, user: session?.user ?? 0)
    }

    func stands() -> Bool {
        guard world.stamp.value(of: dependencies) == stamp, world.goesStraight(path) else { return false }
        guard let session else { return true }
        return world.authenticator.endings == sessionEndings
            && session.accessExpires.map { world.clock.now < $0 } ?? true
    }

    func wasRepeated(_ exchange: RepeatedExchange) {
        let journal = world.control.journal
        guard journal.isEnabled else { return }
        let connection = world.control.roster.index(of: exchange.connection, now: exchange.ended)
        journal.append(exchange, like: entry, at: world.clock.now, connection: connection)
    }
}
