import LarderCoding
public import LarderEvents
import LarderTelemetry
public import LarderTime
import Synchronization

/// Feature flags with three levels: overrides on this device, settings of the server, defaults.
///
/// Reading never waits and is valid from the start: stored settings are read at initialization, before any network. With damaged
/// storage, a value of the wrong type or an unreachable server, the last known settings or the defaults apply, and the problem is
/// reported. Safe from any thread.
public final class FeatureFlags: Sendable {
    /// The level that a value comes from.
    public enum Source: String, Sendable, Hashable {
        /// The default.
        case standard
        /// A setting of the server.
        case remote
        /// An override on this device.
        case override
    }

    /// Fetches the server's settings.
    public typealias Fetch = @Sendable () async throws -> [String: Setting]

    private struct State {
        var remote: [String: Setting] = [:]
        var overrides: [String: Setting] = [:]
        var fetchedAt: WallTime?
        /// Fetches are numbered at their start: an old response never replaces a newer one.
        var lastFetch: UInt64 = 0
        var appliedFetch: UInt64 = 0
        var mismatched: Set<String> = []
    }

    /// The problem of the stored settings; nil if there was none.
    public let loadProblem: Failure?

    private let state: Mutex<State>
    /// Locked during writes, so that the newest state is written last.
    private let saving = Mutex(())
    private let storage: (any Storage)?
    private let fetch: Fetch?
    private let wall: any WallClock
    private let telemetry: Telemetry
    private let hub = EventHub<Set<String>>()

    /// Reads the stored settings; fetches nothing.
    ///
    /// - Parameters:
    ///   - storage: stores settings across restarts; nil stores none.
    ///   - fetch: fetches the server's settings in `refresh()`.
    ///   - wall: used for the times of settings.
    ///   - telemetry: gets an event for each change.
    public init(
        storage: (any Storage)? = nil,
        fetch: Fetch? = nil,
        wall: any WallClock = SystemWallClock(),
        telemetry: Telemetry = .off
    ) {
        self.storage = storage
        self.fetch = fetch
        self.wall = wall
        self.telemetry = telemetry
        var state = State()
        var problem: Failure?
        do {
            if let bytes = try storage?.load() { state = try Self.decode(bytes) }
        } catch let error as Failure {
            problem = error
        } catch {
            problem = Failure(
                .unusable,
                "Stored feature flags cannot be read; defaults hold. \(error)",
                cause: error
            )
        }
        loadProblem = problem
        self.state = Mutex(state)
        if let problem { telemetry.record(.note(name: "flagsNotLoaded", detail: problem.description)) }
    }

    // MARK: Reading

    /// The value of a flag. A setting of the wrong type is ignored and reported once.
    public subscript<Value>(key: FlagKey<Value>) -> Value { look(key).value }

    /// The level that the value comes from.
    public func source<Value>(of key: FlagKey<Value>) -> Source { look(key).source }

    /// The time of the last fetch; nil if there was none.
    public var fetchedAt: WallTime? { state.withLock { $0.fetchedAt } }

    /// The overrides on this device by name.
    public var overrides: [String: Setting] { state.withLock { $0.overrides } }

    /// The server's settings by name.
    public var remote: [String: Setting] { state.withLock { $0.remote } }

    /// The values of a flag, beginning with the current one. Equal values are not repeated; a slow reader gets only the newest.
    public func updates<Value>(of key: FlagKey<Value>) -> Updates<Value> {
        Updates(flags: self, key: key, changes: hub.subscribe(limit: 1))
    }

    /// The names of flags with changed settings, from now on.
    public var changes: EventSequence<Set<String>> { hub.subscribe(limit: 64) }

    // MARK: Setting

    /// Overrides a flag on this device; nil removes the override.
    ///
    /// - Throws: `.notStored` if the override lasts only until the process ends, `.unusable` if it was rejected.
    public func setOverride<Value>(_ value: Value?, for key: FlagKey<Value>) throws(Failure) {
        if let setting = value?.flagSetting {
            if case .number(let number) = setting, !number.isFinite {
                throw Failure(.unusable, "\(key.name) cannot be \(number): give a finite number.")
            }
            try Setting.check([key.name: setting])
        }
        change { $0.overrides[key.name] = value?.flagSetting }
        try save()
    }

    /// Fetches the server's settings and replaces the known ones.
    ///
    /// Of overlapping calls, the one that started last wins.
    /// - Returns: the names of flags with changed settings.
    /// - Throws: `.noFetch`, `.fetchFailed` and `.unusable`, which change nothing; `.notStored` if the settings last only until the
    ///   process ends.
    @discardableResult
    public func refresh() async throws(Failure) -> Set<String> {
        guard let fetch else {
            throw Failure(
                .noFetch,
                "Feature flags have no source: pass a fetch closure to `FeatureFlags`."
            )
        }
        let number = state.withLock { state in
            state.lastFetch += 1
            return state.lastFetch
        }
        let settings: [String: Setting]
        do {
            settings = try await fetch()
        } catch {
            throw Failure(
                .fetchFailed,
                "Feature flags could not be fetched; known ones hold. \(error)",
                cause: error
            )
        }
        try Setting.check(settings)
        let changed = change { state in
            guard number > state.appliedFetch else { return }
            state.appliedFetch = number
            state.remote = settings
            state.fetchedAt = wall.now
        }
        try save()
        return changed
    }

    // MARK: Inside

    private func look<Value>(_ key: FlagKey<Value>) -> (value: Value, source: Source) {
        let (result, isMismatch) = state.withLock { state -> ((Value, Source), Bool) in
            var isMismatch = false
            if let setting = state.overrides[key.name] {
                if let value = Value(flag: setting) { return ((value, .override), false) }
                isMismatch = state.mismatched.insert(key.name).inserted
            }
            if let setting = state.remote[key.name] {
                if let value = Value(flag: setting) { return ((value, .remote), isMismatch) }
                isMismatch = state.mismatched.insert(key.name).inserted || isMismatch
            }
            return ((key.defaultValue, .standard), isMismatch)
        }
        if isMismatch { telemetry.record(.note(name: "flagOfOtherType", detail: key.name)) }
        return result
    }

    @discardableResult
    private func change(_ body: (inout State) -> Void) -> Set<String> {
        let (changed, wakeups) = state.withLock { state in
            let old = state.remote.merging(state.overrides) { $1 }
            body(&state)
            let new = state.remote.merging(state.overrides) { $1 }
            let changed = Set(old.keys).union(new.keys).filter { old[$0] != new[$0] }
            state.mismatched.subtract(changed)
            return (changed, changed.isEmpty ? [] : hub.post(changed))
        }
        for wakeup in wakeups { wakeup.resume() }
        for name in changed.sorted() { telemetry.record(.flagChanged(key: name)) }
        return changed
    }

    private func save() throws(Failure) {
        guard let storage else { return }
        do {
            try saving.withLock { _ in try storage.save(Self.encode(state.withLock { $0 })) }
        } catch {
            throw Failure(
                .notStored,
                "Feature flags hold until the process ends: they cannot be stored. \(error)",
                cause: error
            )
        }
    }

    private static func encode(_ state: State) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("format")
        writer.integer(1)
        if let fetchedAt = state.fetchedAt {
            writer.key("fetchedAt")
            writer.integer(fetchedAt.nanosecondsSinceEpoch)
        }
        for (name, settings) in [("remote", state.remote), ("overrides", state.overrides)] {
            writer.key(name)
            writer.beginObject()
            for (name, setting) in settings.sorted(by: { $0.key < $1.key }) {
                writer.key(name)
                setting.write(to: &writer)
            }
            writer.endObject()
        }
        writer.endObject()
        return writer.bytes
    }

    private static func decode(_ bytes: [UInt8]) throws(Failure) -> State {
        let value: JSONValue
        do {
            value = try JSONParser.parse(bytes)
        } catch {
            throw Failure(
                .unusable,
                "Stored feature flags are damaged; defaults hold. \(error)",
                cause: error
            )
        }
        guard value["format"]?.integer == 1, let remote = value["remote"]?.object,
            let overrides = value["overrides"]?.object
        else {
            throw Failure(
                .unusable,
                "Stored feature flags are of another program or version; defaults hold."
            )
        }
        return State(
            remote: try Setting.settings(remote),
            overrides: try Setting.settings(overrides),
            fetchedAt: value["fetchedAt"]?.integer.map { WallTime(nanosecondsSinceEpoch: $0) }
        )
    }
}
