import Foundation
import LarderDevice
import LarderEvents
import LarderHTTP
import LarderHTTPCache
import LarderResources
import LarderTelemetry
import LarderTime
import Synchronization

/// The services of a client and the tasks that run them. They end with the client, or when it is closed.
///
/// Safe from any thread.
final class RunningServices: Sendable {
    private struct Running {
        var tasks: [Task<Void, Never>] = []
        var registrations: [EventRegistration] = []
    }

    /// A reference to the monitor for parts that are created before it.
    final class MonitorReference: Sendable {
        private let value = Mutex<NetworkMonitor?>(nil)

        var monitor: NetworkMonitor? { value.withLock { $0 } }

        func set(_ monitor: NetworkMonitor?) { value.withLock { $0 = monitor } }
    }

    let telemetry: Telemetry
    let network: NetworkMonitor?
    let memory: MemoryGuard?
    let flags: FeatureFlags?
    let idle: IdleScheduler?
    /// Whether the HTTP cache is used; off until the flags have been applied.
    let httpSwitch: HTTPCacheSwitch
    private let cache: LarderCache
    private let settings: APIClient.Services
    private let running = Mutex<Running?>(Running())

    /// The key of what was received in the month of a data budget.
    private static let useKey = "larder.network.use"

    /// How often an expired session is compared with the tokens of other processes, for live syncs.
    private static let signInCheckInterval: Duration = .seconds(30)

    /// Creates the client's own services.
    init(
        _ settings: APIClient.Services,
        _ telemetry: Telemetry,
        _ cache: LarderCache,
        server: String
    ) {
        var kept = settings
        // The monitor and the guard retain the sources until they are closed.
        kept.networkSource = nil
        kept.memorySource = nil
        self.settings = kept
        self.telemetry = telemetry
        self.cache = cache
        httpSwitch = HTTPCacheSwitch(cache)
        let configuration = cache.configuration
        if case .own = settings.telemetry {
            // Random, so that it identifies neither a person nor a device.
            let session = String(UInt64(configuration.random() * 0x1p53), radix: 16)
            telemetry.setLabels(session: session, appVersion: settings.appVersion)
            telemetry.record(.note(name: TelemetryEvent.beginning))
        }
        switch settings.network {
        case .none: network = nil
        case .given(let monitor):
            monitor.policy = settings.degradation
            network = monitor
        case .own:
            // It spreads clients when the network returns.
            let seed = UInt64(configuration.random() * 0x1p53) &* 0x9E37_79B9_7F4A_7C15
            var monitoring = NetworkMonitor.Configuration(seed: seed)
            monitoring.policy = settings.degradation
            monitoring.dataBudget = settings.dataBudget
            if let budget = settings.dataBudget { Self.restore(budget, cache, telemetry) }
            // A given source always counts.
            let isLocal = HTTPURL(server)?.isLocal ?? false
            monitoring.requiresInterface = settings.networkSource != nil || !isLocal
            network = NetworkMonitor(
                source: settings.networkSource ?? NetworkMonitor.systemSource().source,
                configuration: monitoring,
                clock: configuration.monotonicClock,
                onEvent: { telemetry.record($0) }
            )
            network?.setMetered(settings.isMetered)
        }
        switch settings.memory {
        case .none: memory = nil
        case .given(let memoryGuard): memory = memoryGuard
        case .own:
            memory = MemoryGuard(
                source: settings.memorySource ?? MemoryGuard.systemSource(),
                policy: settings.memoryPolicy,
                clock: configuration.monotonicClock,
                onEvent: { telemetry.record($0) }
            )
        }
        switch settings.flags {
        case .none: flags = nil
        case .given(let given): flags = given
        case .own:
            flags = FeatureFlags(store: cache.outboxDisk, fetch: Self.fetch(settings, cache), telemetry: telemetry)
        }
        switch settings.idle {
        case .none: idle = nil
        case .given(let scheduler): idle = scheduler
        case .own: idle = IdleScheduler(clock: configuration.monotonicClock)
        }
    }

    deinit { end() }

    /// Submits a decode that can wait, for the image pipeline; nil without an idle scheduler.
    var submitWhenIdle: (@Sendable (@escaping @Sendable () -> Bool, @escaping @Sendable () -> Void) -> Void)? {
        guard let idle else { return nil }
        return { [flags] isWanted, run in
            if flags?[.idleDecoding] ?? true {
                idle.submit(isWanted: isWanted, run: run)
            } else if isWanted() {
                run()
            }
        }
    }

    private static func restore(_ budget: NetworkMonitor.DataBudget, _ cache: LarderCache, _ telemetry: Telemetry) {
        do {
            guard let bytes = try cache.outboxDisk?.metadata(useKey) else { return }
            budget.restore(try JSONDecoder().decode(NetworkMonitor.DataBudget.Use.self, from: Data(bytes)))
        } catch { telemetry.record(.note(name: "dataUseNotKnown", detail: "\(error)")) }
    }

    /// Stores what was received after each exchange, on a thread for the disk: the process may end at any time.
    private static func keepUse(
        _ uses: EventSequence<NetworkMonitor.DataBudget.Use>,
        _ cache: LarderCache,
        _ telemetry: Telemetry
    ) async {
        guard let disk = cache.outboxDisk else { return }
        for await use in uses {
            await cache.core.changing {
                do {
                    let bytes = Array(try JSONEncoder().encode(use))
                    try disk.write { transaction in try transaction.setMetadata(bytes, for: useKey) }
                } catch { telemetry.record(.note(name: "dataUseNotKept", detail: "\(error)")) }
            }
        }
    }

    private static func fetch(
        _ settings: APIClient.Services,
        _ cache: LarderCache
    ) -> (@Sendable () async throws -> [String: Bool])? {
        guard let load = settings.fetchFlags else { return nil }
        let lifetime = settings.flagsLifetime
        return { try await cache.request("larder.flags", as: [String: Bool].self, lifetime: lifetime, load: load) }
    }

    // MARK: Running

    /// Starts the tasks.
    ///
    /// - Parameter probe: sends a small request to the server.
    func begin(
        _ limits: LimitController,
        _ configuration: CacheConfiguration,
        _ http: HTTPCache?,
        probe: @escaping @Sendable () async -> Void
    ) async {
        let sleeper = configuration.monotonicClock
        if let network {
            let behaviors = network.behaviors
            let state = network.current
            // The monitor reports changes only; a poor network at the start is reported here.
            if state.level != .good {
                telemetry.record(.networkLevel(state.level, from: .good, cause: state.cause.rawValue))
            }
            // The current behavior applies before the first read.
            limits.follow(network.behavior)
            let core = cache.core
            // Observed values are shown again, which may read them.
            run { for await behavior in behaviors { await core.reading { limits.follow(behavior) } } }
            run { await network.run(sleeper: sleeper) }
            run { await network.probe(sleeper: sleeper, probe) }
            if case .own = settings.network, let uses = settings.dataBudget?.uses {
                let (cache, telemetry) = (cache, telemetry)
                run { await Self.keepUse(uses, cache, telemetry) }
            }
        }
        if let memory {
            keep(memory.register(reaction(limits)))
            run { await memory.run(sleeper: sleeper) }
        }
        await applyCacheFlags(http)
        if let flags { follow(flags, limits, http) }
    }

    /// Turns the disk tier and the HTTP cache off or on, before the first read and after each change of the flags.
    private func applyCacheFlags(_ http: HTTPCache?) async {
        let isDiskOn = flags?[.diskTier] ?? true
        do throws(LarderError) { try await cache.setDiskTier(isOn: isDiskOn) } catch {
            // It is off, and the next start tries again.
            cache.configuration.onEvent(.storageFailed(error))
        }
        guard let http else { return }
        let isOn = flags?[.httpCache] ?? true
        await cache.core.changing { [httpSwitch] in httpSwitch.set(isOn, http) }
    }

    func reaction(_ limits: LimitController) -> MemoryReaction {
        MemoryReaction(
            "larder client",
            measure: { [network] in
                var usage = limits.usage()
                usage.requests = network?.requestsInFlight ?? 0
                return usage
            },
            stop: { limits.stopWork(for: $0) },
            release: { limits.releaseMemory(for: $0) }
        )
    }

    private func follow(_ flags: FeatureFlags, _ limits: LimitController, _ http: HTTPCache?) {
        let (network, memory, telemetry, policy) = (network, memory, telemetry, settings.degradation)
        let counts = if case .none = settings.telemetry { false } else { true }
        let apply: @Sendable () -> Void = {
            let allowed = flags[.networkDegradation] ? policy : .none
            if let network, network.policy != allowed { network.policy = allowed }
            memory?.setEnabled(flags[.memoryGuard])
            if counts { telemetry.setTotals(flags[.telemetryTotals]) }
            limits.setPrefetch(flags[.imagePrefetch])
        }
        let changes = flags.changes
        apply()
        run { [weak self] in
            for await _ in changes {
                apply()
                await self?.applyCacheFlags(http)
            }
        }
        guard settings.fetchFlags != nil else { return }
        let behaviors = network?.behaviors
        run {
            await Self.refresh(flags, telemetry)
            guard let behaviors else { return }
            // There may be a network now. Settings that are still fresh cost no request.
            for await behavior in behaviors where behavior.refreshesByItself { await Self.refresh(flags, telemetry) }
        }
    }

    private static func refresh(_ flags: FeatureFlags, _ telemetry: Telemetry) async {
        do throws(LarderError) { try await flags.refresh() } catch {
            // The known settings stay in force.
            telemetry.record(.note(name: "flagsNotFetched", detail: error.description))
        }
    }

    /// Shows the client in a dashboard.
    func inspect(_ inspector: ClientInspector) { run { await inspector.run() } }

    /// Reports the progress of a synchronisation to telemetry.
    func count(_ sync: ChangeSync) {
        if case .none = settings.telemetry { return }
        let telemetry = telemetry
        let statuses = sync.statuses
        run {
            var applied = 0
            var resyncs = 0
            for await status in statuses {
                if status.applied > applied {
                    let count = status.applied - applied
                    telemetry.record(
                        .sync(feature: "changes", applied: count, remaining: status.isCaughtUp ? 0 : nil)
                    )
                }
                if status.resyncs > resyncs { telemetry.record(.note(name: "resync")) }
                (applied, resyncs) = (status.applied, status.resyncs)
            }
        }
    }

    /// Lets a live sync run only while a user is signed in.
    ///
    /// After the session has expired the live sync sends no request that would find the tokens of another process, so that they are looked
    /// for at an interval.
    func limit(_ live: LiveSync, to session: BearerSession) {
        let clock = cache.configuration.monotonicClock
        let states = session.states
        live.setAllowed(session.state.isSignedIn)
        run {
            while !Task.isCancelled {
                // The state itself: an element that arrives at the end of a wait may be lost.
                let state = session.state
                live.setAllowed(state.isSignedIn)
                var due: MonotonicTime?
                if case .expired = state { due = clock.uptime + Self.signInCheckInterval }
                if await states.next(until: due, by: clock) == nil, !Task.isCancelled { await session.adoptSignIn() }
            }
        }
    }

    /// Starts the maintenance of stores while nobody waits.
    func maintain(_ stores: [StoreMaintenance.Item], _ clock: any MonotonicClock) {
        guard let chosen = settings.maintenance, !stores.isEmpty else { return }
        let work = StoreMaintenance(stores, chosen, clock: clock, telemetry: telemetry) { [idle, memory] in
            idle?.isIdle ?? true && memory?.current.reported ?? .normal == .normal
        }
        run { await work.run() }
    }

    private func run(_ body: @escaping @Sendable () async -> Void) {
        running.withLock { running in
            // No task starts after the end.
            guard running != nil else { return }
            running?.tasks.append(Task { await body() })
        }
    }

    private func keep(_ registration: EventRegistration) { running.withLock { $0?.registrations.append(registration) } }

    /// Ends all tasks and registrations, and closes the client's own services. Telemetry can still be read.
    func end() {
        guard let ended = running.withLock({ $0.take() }) else { return }
        for task in ended.tasks { task.cancel() }
        if case .own = settings.network { network?.close() }
        if case .own = settings.memory { memory?.close() }
        if case .own = settings.telemetry { telemetry.record(.note(name: TelemetryEvent.ending)) }
    }
}
