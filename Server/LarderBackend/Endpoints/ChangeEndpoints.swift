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
        let fault = call.owner.deviations.page
        if fault == .expired { throw call.world.resync("The token has expired.", reason: "expired") }
        if fault == .noTombstones { try call.world.forgetTombstones() }
        var poll: LongPoll?
        let page = try call.read { store -> ChangePage? in
            let reader = call.world.changeReader(store)
            let scope = try store.scope(of: call.viewer)
            if case .now = since {
                let token = try reader.present(filter: filter ?? .all, viewer: call.viewer)
                return ChangePage(items: [], next: token, hasMore: false)
            }
            let token = try reader.start(since: since.token, filter: filter, viewer: call.viewer)
            var page = try reader.page(after: token, scope: scope, limit: limit)
            switch fault {
            case .repeated, .empty:
                if fault == .empty { page.items = [] }
                page.next = token
                page.hasMore = true
                return page
            case .reversed: page.items.reverse()
            case nil, .expired, .noTombstones: break
            }
            guard page.items.isEmpty, !page.hasMore, wait > 0 else { return page }
            // Made while the store is locked, so that each commit is either on this page or ends the poll.
            poll = LongPoll(call, after: page.next, scope: scope, limit: limit)
            return nil
        }
        guard let page else {
            poll?.start(for: .seconds(wait))
            return nil
        }
        return .json(.ok, body(page), fields: [.vary: "Authorization, Origin"])
    }

    static func body(_ page: ChangePage) -> [UInt8] {
        [UInt8](items: page.items, #","nextToken":"\#(page.next.text)","hasMore":\#(page.hasMore)"#)
    }

    /// The starting position that a reader requests.
    enum Since {
        case beginning
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
                throw world.resync("`since` is not a valid change token.", reason: "foreign")
            }
            return .token(token)
        }
    }

    /// The kinds in `types=post,message`.
    static func filter(_ call: Call) throws(Problem) -> ChangeFilter? {
        guard let text = call.query.first("types") else { return nil }
        guard !call.world.hasCollections else {
            throw call.invalid("types", "is not for collections: their feed has the changes of all")
        }
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
    }

    let session: Int64?
    private let exchange: Exchange
    private let world: World
    private let token: ChangeToken
    private let scope: ReaderScope
    private let limit: Int
    private let state = Mutex(State())

    /// Waits for changes after `token`. Call it while the store is locked.
    init(_ call: Call, after token: ChangeToken, scope: ReaderScope, limit: Int) {
        (exchange, world, session) = (call.exchange, call.world, call.session?.row)
        (self.token, self.scope, self.limit) = (token, scope, limit)
        let reader = world.live.add(self, scope: scope, from: token)
        state.withLock { $0.reader = reader }
    }

    /// Ends the poll after a time, or when its client leaves. On the loop.
    func start(for time: Duration) {
        let timer = world.clock.schedule(after: time) { [self] in exchange.loop.execute { [self] in finish() } }
        let isDone = state.withLock { state in
            state.timer = timer
            return state.isDone
        }
        if isDone { world.clock.cancel(timer) } else { exchange.whenAbandoned { [self] in finish() } }
    }

    /// The poll was authorised when it arrived, so it is answered with what it may see, also at the end of its session.
    func receive(_ signal: LiveSignal) {
        if case .heartbeat = signal { return }
        // The store may be locked here. The loop reads the page later, with all changes until then.
        exchange.loop.execute { [self] in finish() }
    }

    private func finish() {
        let work = state.withLock { state -> State? in
            guard !state.isDone else { return nil }
            state.isDone = true
            return state
        }
        guard let work else { return }
        if let reader = work.reader { world.removeReader(reader) }
        if let timer = work.timer { world.clock.cancel(timer) }
        guard !exchange.isAbandoned else { return }
        let reply: Reply
        do {
            let page = try world.read { store in
                let reader = world.changeReader(store)
                // The state may have been replaced since the poll began.
                let token = try reader.start(since: token, filter: nil, viewer: scope.viewer)
                return try reader.page(after: token, scope: scope, limit: limit)
            }
            reply = .json(.ok, ChangeEndpoints.body(page), fields: [.vary: "Authorization, Origin"])
        } catch {
            reply = error.reply
        }
        exchange.complete(reply)
    }
}
