import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

/// A request for a page. Each request that it sends has its own order.
typealias PageFlight = SingleFlight<Void, Void, LarderError>

/// The state that the readers of one timeline share besides its node: the page requests in flight, and the errors of
/// the last ones.
///
/// Safe from any thread. It lives as long as a reader or a request.
final class TimelineEngine<Item: CacheEntity>: AnyTimelineEngine {
    struct State {
        var resource: PagedResource<Item>
        var flights: [TimelinePlace: PageFlight] = [:]
        /// The error of the last request for each place.
        var errors: [TimelinePlace: LarderError] = [:]
        /// The delays of places whose last request has failed.
        var delays: [TimelinePlace: PageDelay] = [:]
        var returning: EventRegistration?
        var watchers: [UInt64: @Sendable () -> Void] = [:]
        var lastWatcher: UInt64 = 0
        var isClosed = false
    }

    let core: CacheCore
    let node: Node<Timeline<Item>.List>
    private let registry: TimelineRegistry
    private let name: TimelineRegistry.Name
    let state: Mutex<State>

    init(
        _ resource: PagedResource<Item>,
        _ core: CacheCore,
        _ registry: TimelineRegistry,
        _ name: TimelineRegistry.Name
    ) {
        self.core = core
        self.registry = registry
        self.name = name
        state = Mutex(State(resource: resource))
        node = core.nodes.node(of: resource.list, in: core)
        let returning = core.returns.add { [weak self] _ in self?.endBackOff() }
        state.withLock { $0.returning = returning }
    }

    deinit { registry.forget(name) }

    /// Fetches later pages by the resource of this reader, which may know a newer session.
    ///
    /// - Returns: the settings of the reader.
    func take(_ resource: PagedResource<Item>, _ policy: ReadPolicy?) -> ReadOptions {
        // The old resource is released outside of the lock, because it holds user code.
        _ = state.withLock { state in
            let old = state.resource
            state.resource = resource
            return old
        }
        let newest = resource.list
        node.admit(newest)
        node.take(newest)
        return node.options(newest, policy)
    }

    var resource: PagedResource<Item> { state.withLock { $0.resource } }

    // MARK: Watching

    /// The places with a request in flight, and the errors of the last failed requests.
    var paging: (fetching: Set<TimelinePlace>, errors: [TimelinePlace: LarderError]) {
        state.withLock { (Set($0.flights.keys), $0.errors) }
    }

    /// Registers a function that is called when `paging` has changed.
    func watch(_ watcher: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLock { state in
            state.lastWatcher += 1
            state.watchers[state.lastWatcher] = watcher
            return state.lastWatcher
        }
    }

    func removeWatcher(_ id: UInt64) { state.withLock { $0.watchers[id] = nil } }

    private func tell() {
        for watcher in state.withLock({ Array($0.watchers.values) }) { watcher() }
    }

    func close() {
        let flights = state.withLock { state in
            state.isClosed = true
            state.watchers = [:]
            defer { state.flights = [:] }
            return Array(state.flights.values)
        }
        for flight in flights {
            flight.finish(.failure(LarderError(.closed, "The cache was closed or erased.")))
            flight.cancel()
        }
    }

    // MARK: Pages

    /// Fetches the page of a place. Concurrent calls for one place share the request.
    ///
    /// - Parameter isUserInitiated: whether it is requested although the last request has just failed.
    func load(_ place: TimelinePlace, isUserInitiated: Bool = false) async throws(LarderError) {
        guard core.configuration.networkBehavior().allowsPaging else {
            // Only the caller gets this error, because the shown list is not affected.
            throw LarderError(
                .offline,
                "No more items of \"\(node.key)\" can be loaded: the network is unavailable or restricted. Try again when it is "
                    + "available."
            )
        }
        if !isUserInitiated, let error = postponement(of: place) { throw error }
        let (flight, isNew) = try state.withLock { state throws(LarderError) in
            guard !state.isClosed else { throw LarderError(.closed, "The cache was closed or erased.") }
            if let flight = state.flights[place], flight.hold() { return (flight, false) }
            let flight = PageFlight(()) { [weak self] in self?.remove($0, place, nil) }
            state.flights[place] = flight
            return (flight, true)
        }
        defer { flight.leave() }
        if isNew {
            core.readRetryBudget.withLock { $0.deposit() }
            tell()
            flight.run(Task { await self.carryOut(flight, place) })
        } else {
            core.configuration.onEvent(.merged(resource: node.key.name))
        }
        try await flight.wait()
    }

    private func remove(_ flight: PageFlight, _ place: TimelinePlace, _ error: LarderError?) {
        state.withLock { state in
            if state.flights[place] === flight { state.flights[place] = nil }
            state.errors[place] = error
        }
        tell()
    }

    private func carryOut(_ flight: PageFlight, _ place: TimelinePlace) async {
        do {
            try await fetch(place)
            state.withLock { $0.delays[place] = nil }
            remove(flight, place, nil)
            flight.finish(.success(()))
        } catch {
            let error = LarderError(error)
            if error.code != .cancelled {
                core.configuration.onEvent(.failed(resource: node.key.name, error))
                delay(place, after: error)
            }
            remove(flight, place, error.code == .cancelled ? nil : error)
            flight.finish(.failure(error))
        }
    }

    private var layout: TimelineLayout {
        get throws {
            guard let query = core.query(node.key)?.stored.query else { return TimelineLayout() }
            return TimelineLayout(query.members, try TimelineLayout.Details(query.details))
        }
    }

    private func cursor(of place: TimelinePlace) throws -> String? {
        let layout = try layout
        switch place {
        case .tail: return layout.tail.cursor
        case .gap(let number):
            guard let index = layout.index(ofGap: number), case .gap(_, let cursor) = layout.elements[index] else {
                return nil
            }
            return cursor
        case .page(let cursor): return cursor.flatMap { layout.elements.contains(.boundary($0)) ? $0 : nil }
        }
    }

    /// Fetches the page of a place. If the server does not know the cursor any more, because its item is gone, the
    /// pages above are fetched again until one of them leads to the place.
    private func fetch(_ place: TimelinePlace) async throws {
        guard let cursor = try await core.reading({ try self.cursor(of: place) }) else {
            if place == .page(nil) { try await newest() }
            return
        }
        if try await ask(cursor, at: place) { return }
        try forget(cursor)
        var used: Set<String> = [cursor]
        var hasAskedForNewest = false
        while let next = try self.cursor(of: place) {
            if used.insert(next).inserted {
                if try await ask(next, at: place) { return }
                try forget(next)
            } else if let above = try layout.boundaries(above: place).first(where: { used.insert($0).inserted }) {
                if try await !ask(above, at: .page(above)) { try forget(above) }
            } else if !hasAskedForNewest {
                hasAskedForNewest = true
                try await newest()
            } else {
                throw LarderError(
                    .gone,
                    "The server no longer knows the cursors of \"\(node.key)\". Refresh the timeline with `onDiscontinuity: .reset`."
                )
            }
        }
    }

    /// Removes the boundary of a page that cannot be fetched any more.
    private func forget(_ cursor: String) throws {
        var update = CacheUpdate()
        update.answered = node.storedKey
        let merge = QueryMerge(confirms: false) { query, _, _ in
            try query.editLayout { $0.elements.removeAll { $0 == .boundary(cursor) } }
        }
        update.steps.append(.mergeQuery(node.key, merge))
        try core.commit(update, isTolerant: true)
    }

    /// Fetches the newest page, as a refresh does.
    private func newest() async throws {
        let options = node.options(resource.list)
        let flight = try node.join(options, startedSince: core.now().uptime, isForced: true)
        defer { flight.leave() }
        try await flight.wait()
    }

    /// Fetches a page and merges it; false if the server does not know the cursor.
    private func ask(_ cursor: String, at place: TimelinePlace) async throws -> Bool {
        guard core.configuration.mayUseNetwork() else {
            throw LarderError(
                .offline,
                "The network may not be used at present: no page of \"\(node.key)\" was requested."
            )
        }
        let resource = resource
        let order = core.order.begin()
        defer { core.order.end(order) }
        let moment = core.now()
        let limit = resource.pageSize(core.configuration.networkBehavior())
        let request = PageRequest(cursor: cursor, limit: limit)
        let fetched: Fetched<EntityList<Item>>
        do {
            fetched = try await within(
                resource.timeout,
                clock: core.configuration.monotonicClock,
                sleeper: core.configuration.monotonicClock
            ) {
                try await resource.fetch(request)
            }
        } catch let error as TimeLimitExceeded {
            throw LarderError(.timedOut, "A page of \"\(node.key)\" did not come within \(error.limit).", cause: error)
        } catch let error as LarderError
            where error.code == .gone || (error.status == 410 && error.code != .unexpectedReply)
        {
            return false
        }
        switch fetched.content {
        case .gone: return false
        case .notModified:
            throw LarderError(
                .unexpectedReply,
                "A page of \"\(node.key)\" was reported as not modified, although the request had no validator."
            )
        case .value(let page):
            try await core.changing { try self.store(page, fetched, resource, cursor, place, order, moment) }
            let took = core.configuration.monotonicClock.uptime - moment.uptime
            core.configuration.onEvent(.fetched(resource: node.key.name, took))
            return true
        }
    }

    private func store(
        _ page: EntityList<Item>,
        _ fetched: Fetched<EntityList<Item>>,
        _ resource: PagedResource<Item>,
        _ cursor: String,
        _ place: TimelinePlace,
        _ order: UInt64,
        _ moment: Moment
    ) throws {
        let drafts = page.items.map { EntityDraft($0, completeness: resource.completeness) }
        let keys = drafts.map(\.key)
        var update = CacheUpdate()
        update.answered = node.storedKey
        update.isMemoryOnly = !fetched.mayStore
        update.steps = drafts.map { .put($0.asPart, validator: nil, stated: fetched.stated, source: .network) }
        let merge = QueryMerge(confirms: false, keys: keys) { query, orders, context in
            // A list that was removed meanwhile is not created again by one of its older pages.
            guard !query.members.isEmpty || !query.details.isEmpty else { return }
            let incoming = IncomingPage(
                keys: keys.filter { context.stored.contains($0) },
                cursor: page.nextCursor,
                validator: fetched.validator,
                order: context.order,
                startedAt: context.startedAt,
                settlingTime: resource.settlingTime
            )
            try query.editLayout { layout in
                layout.take(incoming, at: place, cursor: cursor, &orders)
                if place != .tail { layout.keep(atMost: resource.keptMaximum) }
            }
        }
        update.steps.append(.mergeQuery(node.key, merge))
        try core.commit(update, order: order, moment: moment, isTolerant: true)
    }
}
