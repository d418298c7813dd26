import LarderCoding
import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderTime
import Synchronization

/// Connects the engine and the backend: finds the world of a request and applies gates and faults.
///
/// Safe from any thread. A request that no setting of its world can affect goes directly to the backend.
final class ControlPlane: ExchangeHandler {
    let backend: Backend
    /// The files that the server was started with.
    let files: SourceFiles
    let origin: RequestOrigin
    /// Whether a path below `/w/` names a world. If not, only the field `Larder-World` does.
    let readsWorldPaths: Bool
    let worlds: WorldRegistry
    let controlGuard: ControlGuard
    let contractChecks = ContractChecks()
    let counts = RequestCounts()
    let clients = InspectedClients()
    /// The files of collections; nil for other data.
    let collectionFiles: CollectionFiles?
    private let main: World
    private let log: AccessLog?
    private let server = Mutex<HTTPServer?>(nil)
    private let answerControl: ControlAnswer
    /// Those of https; nil if only http is served.
    let certificates: CertificateSource?

    /// Answers a request to the control plane, or returns nil and completes the exchange later. Its last argument is the
    /// identifier of the world in the request.
    typealias ControlAnswer = @Sendable (Request, Exchange, ControlPlane, String) -> Reply?

    /// - Throws: if the contents of the world, the server behind the proxy or the certificates cannot be used.
    init(
        _ source: WorldSource,
        _ configuration: BackendConfiguration,
        answerControl: @escaping ControlAnswer
    ) throws {
        self.answerControl = answerControl
        worlds = try WorldRegistry(source, configuration)
        main = worlds.main
        var (servesDemo, collections) = (true, CollectionFiles?.none)
        switch source {
        case .empty: servesDemo = configuration.routes == nil
        case .collections(let directory):
            collections = try CollectionFiles(
                directory,
                worlds,
                writesBack: configuration.writesBack,
                configuration.announce
            )
        case .fixtures, .generated: break
        }
        backend = Backend(servesDemo: servesDemo)
        collectionFiles = collections
        files = SourceFiles(wall: configuration.server.wall, announce: configuration.announce)
        controlGuard = ControlGuard(
            token: configuration.controlToken,
            isEnabled: configuration.hasControl,
            origins: configuration.controlOrigins
        )
        log = configuration.log
        origin = try configuration.origin.make(configuration.proxy, announce: configuration.announce)
        readsWorldPaths = configuration.proxy.readsWorldPaths
        certificates = try configuration.certificates.map { try CertificateSource($0) }
    }

    /// Connects the plane with its server.
    func attach(_ server: HTTPServer) {
        self.server.withLock { $0 = server }
        worlds.attach(server.loops)
    }

    /// Releases the server, so that both can be deinitialised.
    func detach() {
        let last = server.withLock { server in
            defer { server = nil }
            return server
        }
        _ = consume last
        worlds.attach([])
    }

    /// Returns when every exchange whose reply was sent is in its journal: a peer can have the reply a moment earlier.
    func barrier() async { await withCheckedContinuation { continuation in afterBarrier { continuation.resume() } } }

    /// As `barrier()`, for a loop's thread: `body` runs afterwards, on that loop.
    func afterBarrier(on loop: EventLoop? = nil, _ body: @escaping @Sendable () -> Void) {
        let others = server.withLock { $0?.loops ?? [] }.filter { $0 !== loop }
        HTTPServer.visit(others[...]) { if let loop, !others.isEmpty { loop.execute(body) } else { body() } }
    }

    var servesTLS: Bool { certificates != nil }

    var connectionCount: Int { server.withLock { $0?.connectionCount ?? 0 } }

    var firstLoop: EventLoop? { server.withLock { $0?.loops.first } }

    // MARK: Requests

    func began(_ request: Request, _ exchange: Exchange) -> HeadVerdict {
        var (world, prefixLength) = (World?(main), 0)
        if let path = WorldPath(request, readsPrefix: readsWorldPaths) {
            prefixLength = path.prefixLength
            // Exchanges with the control plane belong to no world, except for the echo.
            if path.isControl {
                world = isEcho(request.droppingPathPrefix(prefixLength)) ? main : nil
            } else {
                world = worlds.find(path.worldID)
            }
        }
        guard let world else { return .proceed }
        let request = request.droppingPathPrefix(prefixLength)
        let now = world.clock.uptime
        let owner = WorldExchange(
            world,
            prefixLength: prefixLength,
            connection: world.control.connections.entry(of: request.connection, now: now),
            backend.customRoutes.routes.matches(request.path)
        )
        exchange.context = owner
        guard request.isCut, !world.control.faults.isEmpty, !isEcho(request) else { return .proceed }
        let facts = ExchangeFacts(request, of: owner)
        let decisions = world.control.faults.decide(facts, owner) { $0.precedesBody }
        guard !decisions.isEmpty else { return .proceed }
        ExchangeRun(self, owner, exchange, facts, decisions).start(isHead: true)
        return .hold
    }

    private func isEcho(_ request: Request) -> Bool { request.path == EchoEndpoints.path[...] }

    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        guard let owner = exchange.context as? WorldExchange else { return handleOutsideOfWorlds(request, exchange) }
        let world = owner.world
        let request = request.droppingPathPrefix(owner.prefixLength)
        if isEcho(request) { return EchoEndpoints.answer(request).adding(CrossOrigin.lines(for: request)) }
        if case .proxy(let proxy) = origin {
            do throws(Problem) { owner.bodyLease = try proxy.memory.take(request.body.count) } catch {
                return error.reply(to: request)
            }
        }
        // Nothing delays, changes or dates the reply. A custom route can delay it, and then its key is in flight.
        if owner.prefixLength == 0, owner.trace == nil, world.clock.followsSystem,
            !world.control.affects(request.path), keyInFlight(of: request, owner) == nil
        {
            return answer(request, exchange, owner)
        }
        let facts = ExchangeFacts(request, of: owner)
        let decided = (owner.trace as? ExchangeTrace)?.decisions ?? []
        let decisions = world.control.faults.decide(facts, owner, after: decided) { stage in
            // What is before the body was decided when the head had arrived.
            request.wasAnnounced ? !stage.precedesBody : stage != .requestBody
        }
        ExchangeRun(self, owner, exchange, facts, decisions).start()
        return nil
    }

    /// Answers a request to the control plane, or to a world that does not exist.
    private func handleOutsideOfWorlds(_ request: Request, _ exchange: Exchange) -> Reply? {
        guard let path = WorldPath(request, readsPrefix: readsWorldPaths) else {
            preconditionFailure("A request without a path of a world belongs to main.")
        }
        guard path.isControl else {
            return worlds.unknown(path.worldID).reply(to: request)
        }
        let request = request.droppingPathPrefix(path.prefixLength)
        // A page may read the reply if its origin may.
        let lines = controlGuard.readingOrigin(request).map { CrossOrigin.lines(forOrigin: $0) } ?? []
        if request.isPreflight, !lines.isEmpty {
            // A preflight has no token and grants nothing: the actual request is checked.
            let methods: [Method] = [.get, .head, .post, .put, .patch, .delete]
            return CrossOrigin.preflight(granting: methods, to: request).adding(lines)
        }
        return answerControl(request, exchange.adding(lines), self, path.worldID)?.adding(lines)
    }

    /// The reply to a preflight for a path that only a fault serves, so that pages can use stubs.
    func stubPreflight(_ request: Request, in world: World) -> Reply? {
        guard hasDomain, let method = request.preflightedMethod, !backend.serves(method, request.path, in: world),
            world.control.faults.answers(method, request.path)
        else { return nil }
        return CrossOrigin.preflight(granting: [method], to: request).adding(CrossOrigin.lines(for: request))
    }

    func rejected(_ rejection: Rejection) -> Reply { backend.rejected(rejection) }

    // MARK: The journal

    func finished(_ record: consuming ExchangeRecord) {
        log?.write(record, at: main.clock.now)
        // Exchanges with the control plane belong to no world.
        let owner = record.context as? WorldExchange
        counts.count(record, route(of: record.request, owner), owner)
        if let collectionFiles, !record.request.method.isSafe, let loop = firstLoop {
            collectionFiles.changed(on: loop)
        }
        guard let control = owner?.world.control, let owner, control.journal.isEnabled || control.recording.isRecording
        else { return }
        let request = record.request
        let entry = JournalEntry(consume record, of: owner)
        if let trace = owner.trace as? ExchangeTrace, let arrival = trace.arrival, let reply = trace.reply {
            let authority = request.targetAuthority ?? request.fields[.host] ?? "localhost"
            control.recording.finished(arrival) { HAR.entry(entry, authority, (request, reply)).encoded }
        }
        control.journal.append(entry)
    }

    // MARK: Replies

    func tokenExpired(to request: Request, in world: World) -> Reply {
        ProblemType.tokenExpired(
            "The token expired at \(world.clock.now.rfc3339()).",
            fields: Authenticator.challenge("invalid_token")
        ).reply(to: request)
    }

    func reply(_ canned: CannedReply, to request: Request, from device: String, in world: World) -> Reply {
        let status = Status(code: canned.status)
        var fields = Fields()
        fields.set(.cacheControl, "no-store")
        if let origin = request.fields.combined(.origin) {
            CrossOrigin.expose(canned.headers.keys.filter { FieldName($0) != nil }.sorted(), to: origin, in: &fields)
        }
        switch canned.retryAfter {
        case .seconds(let seconds)?: fields.set(.retryAfter, String(seconds))
        case .date(let seconds)?:
            var date: [UInt8] = []
            // On the clock that the device's `Date` shows.
            HTTPDate.appendIMF(world.clock.now + world.control.skew(of: device) + .seconds(seconds), to: &date)
            fields.set(.retryAfter, String(decoding: date, as: UTF8.self))
        case nil: break
        }
        let body: [UInt8]
        if let text = canned.body {
            body = Array(text.utf8)
            let isJSON = (try? JSONParser.parse(body)) != nil
            fields.set(.contentType, canned.contentType ?? (isJSON ? "application/json" : "text/plain; charset=utf-8"))
        } else if canned.status >= 400 {
            let type = canned.problem.flatMap { ProblemType(rawValue: $0) } ?? ProblemType.first(status)
            var problem =
                type.map { $0(canned.detail ?? "This reply was injected.") }
                ?? Problem(type: "about:blank", title: status.reasonPhrase, status: status, detail: canned.detail)
            problem.status = status
            body = problem.encoded()
            fields.set(.contentType, "application/problem+json")
        } else {
            body = []
        }
        for (name, value) in canned.headers.sorted(by: { $0.key < $1.key }) {
            if let name = FieldName(name) { fields.set(name, value) }
        }
        return Reply(status: status, fields: fields, body: .bytes(body))
    }

    // MARK: Actions of faults and actors

    /// Reads a representation, without a trace in the state of custom routes.
    func look(at path: String, as person: String?, in world: World, device: String = "actor") -> Reply {
        perform(ScriptedAction("GET", path, as: person), in: world, device: device, isLook: true)
    }

    /// Executes an action immediately.
    @discardableResult func perform(
        _ act: ScriptedAction,
        in world: World,
        device: String = "actor",
        isLook: Bool = false
    ) -> Reply {
        let request: Request
        do throws(Problem) {
            request = try act.request(device: device)
            try requireDomain("An action of another person")
            if world.collections.isEmpty, let person = act.person, try !world.hasPerson(person) {
                throw ProblemType.unauthenticated(
                    "Nobody in the world \(world.id) has the handle '\(person)'.",
                    fields: Authenticator.challenge("invalid_token")
                )
            }
        } catch { return error.reply }
        guard let loop = server.withLock({ $0?.loops.first }) else { return Reply(status: .serviceUnavailable) }
        let owner = WorldExchange(world, backend.customRoutes.routes.matches(request.path))
        (owner.deviations.isDetached, owner.deviations.isLook) = (true, isLook)
        let reply = backend.handle(request, Exchange(detachedOn: loop) { _ in }, owner)
        return reply?.whole(for: request, date: []) ?? Reply(status: .accepted)
    }

    /// Closes the port for a while, at most until the world is reset; existing connections stay open.
    func closeListener(for duration: Duration, clock: WorldClock) {
        let server = server.withLock { $0 }
        server?.pauseListening()
        _ = clock.wait(for: duration, endsWithPlans: true) { server?.resumeListening() }
    }
}
