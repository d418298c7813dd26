import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// The change feed: paged reads and long polls.
enum ChangeEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/changes", .optional, read)
    ]

    static let waitSecondsMaximum = 30

    static func read(_ call: Call) throws(Problem) -> Reply? {
        try Negotiation.requireJSON(call.request)
        let limit = try call.limit(default: 100, maximum: 500)
        let wait = try call.integer("wait", in: 0...waitSecondsMaximum) ?? 0
        let filter = try filter(call)
        let since = try since(call.query.first("since"), in: call.world)
        let hooks = call.world.hooks
        let fault =
            call.owner.deviations.isDetached
            ? .none : hooks.fault(ofPageAfter: since.token, text: call.query.first("since"))
        let style = hooks.dialect.resync
        guard fault != .gone else {
            throw ChangeReader.resync(
                "The token has expired.",
                reason: "expired",
                style: style,
                path: call.world.changesPath
            )
        }
        let waiter = wait > 0 ? LongPoll(call.exchange, call.world, session: call.session) : nil
        let page = try call.read { store -> ChangePage? in
            let reader = call.world.changeReader(store)
            let scope = try store.scope(of: call.viewer)
            if case .now = since {
                let token = try reader.present(filter: filter ?? .all, viewer: call.viewer)
                return ChangePage(items: [], count: 0, next: token, hasMore: false)
            }
            let token = try reader.start(since: since.token, filter: filter, viewer: call.viewer, style: style)
            var page = try reader.page(after: token, scope: scope, limit: limit)
            switch fault {
            case .repeated, .empty:
                if fault == .empty { (page.items, page.count) = ([], 0) }
                page.next = token
                page.hasMore = true
                return page
            case .reversed: page.reverse()
            case .none, .gone: break
            }
            guard page.count == 0, !page.hasMore, let waiter else { return page }
            // Added while the store is locked, so that each commit is either on this page or ends the poll.
            waiter.wait(for: page.next, scope: scope, limit: limit)
            return nil
        }
        guard let page else {
            waiter?.start(limit: .seconds(wait))
            return nil
        }
        return .json(.ok, body(page), fields: [.vary: "Authorization, Origin"])
    }

    static func body(_ page: ChangePage) -> [UInt8] {
        let end = #"],"nextToken":"\#(page.next.text)","hasMore":\#(page.hasMore)}"#
        return Array("{\"items\":[".utf8) + page.items + Array(end.utf8)
    }

    /// The starting position that a reader requests.
    enum Since {
        /// The beginning of the feed.
        case beginning
        /// The current position.
        case now
        case token(ChangeToken)

        var token: ChangeToken? { if case .token(let token) = self { token } else { nil } }
    }

    static func since(_ text: String?, in world: World) throws(Problem) -> Since {
        switch text {
        case nil: return .beginning
        case "now": return .now
        case let text?:
            guard let token = ChangeToken(parsing: text) else {
                throw ChangeReader.resync(
                    "`since` is not a valid change token.",
                    reason: "foreign",
                    path: world.changesPath
                )
            }
            return .token(token)
        }
    }

    /// The kinds in `types=post,message`.
    static func filter(_ call: Call) throws(Problem) -> ChangeFilter? {
        guard let text = call.query.first("types") else { return nil }
        var filter: ChangeFilter = []
        for name in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let kind = EntityKind(named: name), EntityKind.filterable.contains(kind) else {
                let names = EntityKind.filterable.map { $0.name.description }.joined(separator: ", ")
                throw call.invalid("types", "must be a comma-separated list of types: \(names)")
            }
            filter.insert(ChangeFilter(kind))
        }
        return filter
    }
}

/// A long poll: waits for the first change after its token.
///
/// The first of a change, the timeout, the end of the client and that of the world answers the exchange; later ones have no effect.
final class LongPoll: LiveSink {
    private struct State {
        var reader: UInt64?
        var timer: TimerID?
        var isDone = false
        var token: ChangeToken?
        var scope: ReaderScope = .anonymous
        var limit = 0
    }

    let session: Int64?
    private let viewer: Int64
    private let exchange: Exchange
    private let world: World
    private let state = Mutex(State())

    init(_ exchange: Exchange, _ world: World, session: SessionRow?) {
        self.exchange = exchange
        self.world = world
        self.session = session?.row
        viewer = session?.user ?? 0
    }

    /// Waits for changes after `token`. Call it while the store is locked.
    func wait(for token: ChangeToken, scope: ReaderScope, limit: Int) {
        let reader = world.live.add(self, scope: scope, from: token)
        state.withLock { state in
            state.reader = reader
            state.token = token
            state.scope = scope
            state.limit = limit
        }
        // Checked after joining: a reader that joins before the stop is notified, one that joins after it sees it here.
        if world.live.isStopping { serverStops() }
    }

    /// Ends the poll after a time, or when its client leaves. On the loop.
    func start(limit: Duration) {
        let timer = world.clock.schedule(after: limit) { [self] in exchange.loop.execute { [self] in finish() } }
        let isDone = state.withLock { state in
            state.timer = timer
            return state.isDone
        }
        if isDone { world.clock.cancel(timer) } else { exchange.whenAbandoned { [self] in finish() } }
    }

    func send(_ event: LiveEvent) {
        // The store is locked here. The loop reads the page later, with all changes until then.
        exchange.loop.execute { [self] in finish() }
    }

    /// The poll was authorised when it arrived, so it is answered with what it may see.
    func sessionEnded() { exchange.loop.execute { [self] in finish() } }

    func serverStops() { exchange.loop.execute { [self] in finish() } }

    func stateReplaced() { exchange.loop.execute { [self] in finish() } }

    func heartbeat() {}

    private func finish() {
        let work = state.withLock { state -> State? in
            guard !state.isDone else { return nil }
            state.isDone = true
            return state
        }
        guard let work, let token = work.token else { return }
        if let reader = work.reader { world.removeReader(reader) }
        if let timer = work.timer { world.clock.cancel(timer) }
        guard !exchange.isAbandoned else { return }
        let reply: Reply
        do {
            let page = try world.read { store in
                let reader = world.changeReader(store)
                // The state may have been replaced since the poll began.
                let style = world.hooks.dialect.resync
                let token = try reader.start(since: token, filter: nil, viewer: viewer, style: style)
                return try reader.page(after: token, scope: work.scope, limit: work.limit)
            }
            reply = .json(.ok, ChangeEndpoints.body(page), fields: [.vary: "Authorization, Origin"])
        } catch {
            reply = error.reply
        }
        exchange.complete(reply)
    }
}
