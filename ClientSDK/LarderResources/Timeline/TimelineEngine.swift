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
        var delays: [TimelinePlace: BackOff] = [:]
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
        let conduct = core.configuration.networkBehavior()
        guard conduct.allowsPaging || isUserInitiated && conduct.isOfflineByExperience else {
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
            flight.run(Task { await self.carryOut(flight, place, isForced: isUserInitiated) })
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

    private func carryOut(_ flight: PageFlight, _ place: TimelinePlace, isForced: Bool) async {
        do {
            try await fetch(place, isForced: isForced)
            let wasRetry = state.withLock { $0.delays.removeValue(forKey: place) != nil }
            if wasRetry { core.readRetryBudget.withLock { $0.refund() } }
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
}
