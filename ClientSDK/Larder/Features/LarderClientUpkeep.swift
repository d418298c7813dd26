import LarderHTTP
import LarderTime
import Synchronization

/// A client's upkeep as it runs: the parts, and the tasks that keep them going. Nothing of it outlives the client, or its `close`.
///
/// Safe from any thread.
final class LarderClientUpkeep: Sendable {
    private struct Running {
        var tasks: [Task<Void, Never>] = []
        var registrations: [EventRegistration] = []
    }

    /// The monitor, for those who were made before it and have to ask it.
    final class Late: Sendable {
        private let value = Mutex<NetworkMonitor?>(nil)

        var monitor: NetworkMonitor? { value.withLock { $0 } }

        func set(_ monitor: NetworkMonitor?) { value.withLock { $0 = monitor } }
    }

    let telemetry: Telemetry
    let network: NetworkMonitor?
    let memory: MemoryGuard?
    let flags: FeatureFlags?
    private let settings: LarderClient.Upkeep
    private let running = Mutex<Running?>(Running())

    /// What a seed is called in the store: a client's own for ever, so that it has its own place among those that return.
    private static let seedKey = "larder.network.seed"

    /// Makes the client's own parts.
    init(
        _ settings: LarderClient.Upkeep,
        _ telemetry: Telemetry,
        _ cache: LarderCache,
        server: String
    ) {
        var kept = settings
        // The parts hold them, and let go of them when they are closed.
        kept.networkSource = nil
        kept.memorySource = nil
        self.settings = kept
        self.telemetry = telemetry
        let configuration = cache.configuration
        switch settings.network {
        case .none: network = nil
        case .given(let monitor):
            monitor.policy = settings.degradation
            network = monitor
        case .own:
            var monitoring = NetworkMonitor.Configuration(seed: Self.seed(cache, telemetry))
            monitoring.policy = settings.degradation
            // Whoever gives a source of their own means what it says.
            monitoring.heedsInterfaces = settings.networkSource != nil || !Self.isLocal(server)
            network = NetworkMonitor(
                source: settings.networkSource ?? SystemNetworkSource.make().source,
                configuration: monitoring,
                clock: configuration.monotonicClock,
                telemetry: telemetry
            )
        }
        switch settings.memory {
        case .none: memory = nil
        case .given(let memoryGuard): memory = memoryGuard
        case .own:
            memory = MemoryGuard(
                source: settings.memorySource ?? LateMemorySource { SystemMemorySource.make() },
                policy: settings.memoryPolicy,
                clock: configuration.monotonicClock,
                telemetry: telemetry
            )
        }
        switch settings.flags {
        case .none: flags = nil
        case .given(let given): flags = given
        case .own:
            flags = FeatureFlags(
                storage: cache.disk.map { DiskFlagStorage($0) },
                fetch: Self.fetch(settings, cache.requests),
                wall: configuration.wallClock,
                telemetry: telemetry
            )
        }
    }

    deinit { end() }

    private static func seed(_ cache: LarderCache, _ telemetry: Telemetry) -> UInt64 {
        let new = UInt64(cache.configuration.random() * 0x1p53) &* 0x9E37_79B9_7F4A_7C15
        do {
            guard let disk = cache.disk else { return new }
            if let bytes = try disk.metadata(seedKey), let seed = UInt64(String(decoding: bytes, as: UTF8.self)) {
                return seed
            }
            try disk.write { transaction in try transaction.setMetadata(Array("\(new)".utf8), for: seedKey) }
        } catch {
            // It returns at another time after each start, which spreads as well.
            telemetry.record(.note(name: "seedNotKept", detail: "\(error)"))
        }
        return new
    }

    /// Whether a server is on this machine, and needs no interface.
    static func isLocal(_ server: String) -> Bool {
        ["://127.", "://localhost", "://[::1]"].contains { server.contains($0) }
    }

    private static func fetch(_ settings: LarderClient.Upkeep, _ requests: CachedRequests) -> FeatureFlags.Fetch? {
        guard let load = settings.fetchFlags else { return nil }
        let lifetime = settings.flagsLifetime
        return {
            try await requests.request(
                "larder.flags",
                as: [String: FlagSetting].self,
                strategy: .cacheElseLoad,
                lifetime: lifetime,
                load: load
            ).value
        }
    }

    // MARK: Running

    /// Begins to look after a client.
    ///
    /// - Parameters:
    ///   - probe: asks the server for something small.
    ///   - sync: whose progress is counted.
    func begin(
        _ steering: LarderClientSteering,
        _ configuration: CacheConfiguration,
        sync: ChangeSync,
        probe: @escaping @Sendable () async -> Void
    ) {
        let sleeper = configuration.sleeper
        if let network {
            let conducts = network.conducts
            let state = network.current
            // The monitor tells of changes; where the network is bad from the beginning, that is one.
            if state.level != .good {
                telemetry.record(.networkLevel(state.level, from: .good, cause: state.cause.rawValue))
            }
            // What it says now is heeded before the first read.
            steering.follow(network.conduct)
            run { for await conduct in conducts { steering.follow(conduct) } }
            run { await network.run(sleeper: sleeper) }
            run { await network.probe(sleeper: sleeper, probe) }
        }
        if let memory {
            keep(memory.register(Self.reaction(steering)))
            run {
                // Has a late source be made: beside the first read, and not before it.
                _ = memory.explanation
                await memory.run(sleeper: sleeper)
            }
        }
        if let flags { follow(flags, steering) }
        count(sync)
    }

    static func reaction(_ steering: LarderClientSteering) -> MemoryReaction {
        MemoryReaction(
            "larder client",
            stop: { steering.stopWork(for: $0) },
            release: { steering.releaseMemory(for: $0) }
        )
    }

    private func follow(_ flags: FeatureFlags, _ steering: LarderClientSteering) {
        let (network, memory, telemetry, policy) = (network, memory, telemetry, settings.degradation)
        let apply: @Sendable () -> Void = {
            LarderFlags.apply(flags, monitor: network, policy: policy, guard: memory, telemetry: telemetry)
            steering.setPrefetch(flags[LarderFlags.imagePrefetch])
        }
        let changes = flags.changes
        apply()
        run { for await _ in changes { apply() } }
        guard settings.fetchFlags != nil else { return }
        let conducts = network?.conducts
        run {
            await Self.refresh(flags, telemetry)
            guard let conducts else { return }
            // Where there was no network there may be one now. What is still good costs no request.
            for await conduct in conducts where conduct.refreshesByItself { await Self.refresh(flags, telemetry) }
        }
    }

    private static func refresh(_ flags: FeatureFlags, _ telemetry: Telemetry) async {
        do throws(FlagError) { try await flags.refresh() } catch {
            // Known ones hold.
            telemetry.record(.note(name: "flagsNotFetched", detail: error.description))
        }
    }

    private func count(_ sync: ChangeSync) {
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

    private func run(_ body: @escaping @Sendable () async -> Void) {
        running.withLock { running in
            // After the end nothing begins.
            guard running != nil else { return }
            running?.tasks.append(Task { await body() })
        }
    }

    private func keep(_ registration: EventRegistration) { running.withLock { $0?.registrations.append(registration) } }

    /// Ends everything: tasks, registrations, and the system's sources of the client's own parts. What was counted can still be read.
    func end() {
        guard let ended = running.withLock({ $0.take() }) else { return }
        for task in ended.tasks { task.cancel() }
        if case .own = settings.network { network?.close() }
        if case .own = settings.memory { memory?.close() }
    }
}
