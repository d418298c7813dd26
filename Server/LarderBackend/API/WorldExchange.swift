package import LarderEngine
package import LarderHTTP
package import LarderTime
package import Synchronization

/// An exchange with a world: what the control plane, the backend and the journal share about it, found once.
///
/// `@unchecked Sendable`: properties change on the loop of the exchange only, or, for an exchange without a connection, on the one thread
/// that has it. A fault sets `deviations` on the thread of its stage, before the job of the loop that processes the request.
package final class WorldExchange: @unchecked Sendable {
    /// How the request is processed if the control plane deviates from the default.
    package struct Deviations: Sendable {
        /// Reads see the state at an earlier commit.
        package var past: StateHistory.Limit?
        package var live: (any LiveFilter)?
        /// What is wrong with the page of the change feed that is read.
        package var page: ChangePageFault?
        /// Whether the request did not arrive over a connection, so that nothing can delay its reply.
        package var isDetached = false
        /// Whether somebody only looks at the state: what a custom route would change is not kept, and nothing follows its reply.
        package var isLook = false

        package init() {}
    }

    package let world: World
    /// The length in bytes of the world's prefix in the path.
    package let prefixLength: Int
    /// The number of the connection in the world, from 1, and when its first exchange there began. The backend does not use them.
    package let connection: (index: Int, since: MonotonicTime)
    /// The custom routes for the path when the exchange began, whatever the method.
    package let customRoutes: [RouteMatch]
    package var deviations = Deviations()
    /// The caller's row; 0 for an anonymous caller, and before it is known.
    package private(set) var viewer: Int64 = 0
    /// The number of the last commit that the request made; 0 for none.
    package internal(set) var commit: Int64 = 0
    /// The faults and gates of the exchange, which the backend does not use.
    package var trace: (any AnyObject & Sendable)?
    /// The memory that the request's body has, for its limit; nil without one. The backend does not use it.
    package var bodyLease: (any AnyObject & Sendable)?
    /// What the contract of the server says about the exchange, a sentence each. Any thread may complete the exchange, and its check is there.
    package let contractFindings = Mutex<[String]>([])
    /// Whether another server, or a recording of one, answers instead of the API.
    package var isForwarded = false
    /// What a custom route does with the reply and after it.
    var sequel: ReplySequel?
    private var known: (session: SessionRow, stamp: UInt64)?

    package init(
        _ world: World,
        prefixLength: Int = 0,
        connection: (index: Int, since: MonotonicTime) = (0, MonotonicTime(nanoseconds: 0)),
        _ customRoutes: [RouteMatch] = []
    ) {
        (self.world, self.prefixLength, self.customRoutes) = (world, prefixLength, customRoutes)
        self.connection = connection
    }

    /// The session of the request's token; nil without one. It is found again only after a commit.
    package func session(_ request: Request) throws(Problem) -> SessionRow? {
        let stamp = world.stamp
        if let known, known.stamp == stamp, known.session.isValid(at: world.clock.now) { return known.session }
        let session = try Authenticator.session(of: request, in: world)
        known = session.map { ($0, stamp) }
        viewer = session?.user ?? 0
        return session
    }

    /// Takes over the session of an earlier request with the same credentials; false if it has expired.
    func adopt(_ session: SessionRow?) -> Bool {
        guard let session else { return true }
        guard session.isValid(at: world.clock.now) else { return false }
        viewer = session.user
        return true
    }
}

extension ResponseCache.Version {
    /// Nil for a request whose reply is not cached.
    init?(_ request: Request, _ owner: WorldExchange) {
        guard request.method == .get || request.method == .head, owner.deviations.past == nil,
            Negotiation.acceptsJSON(request)
        else { return nil }
        self.init(
            target: request.targetText,
            credentials: request.fields[.authorization],
            stamp: owner.world.stamp
        )
    }
}
