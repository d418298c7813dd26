import LarderCoding
public import LarderTime
import Synchronization

/// Feature flags: what was set here, else what the server says, else the default.
///
/// Reading waits for nothing and is right from the first moment on: what the last life knew was read when this was made, before
/// any network. A damaged storage, a foreign type or a server that is out of reach leave defaults, or what was known, and are
/// told of. Safe from any thread.
public final class FeatureFlags: Sendable {
    /// Who said what a flag is.
    public enum Source: String, Sendable, Hashable {
        /// Nobody but the program.
        case standard
        /// The server.
        case remote
        /// Somebody on this device.
        case override
    }

    /// Gets the server's settings, as by a cached request.
    public typealias Fetch = @Sendable () async throws -> [String: FlagSetting]

    private struct State {
        var remote: [String: FlagSetting] = [:]
        var overrides: [String: FlagSetting] = [:]
        var fetchedAt: WallTime?
        /// Fetches are numbered when they begin: a slow old one never overwrites a newer one.
        var lastFetch: UInt64 = 0
        var appliedFetch: UInt64 = 0
        var mismatched: Set<String> = []
    }

    /// What was wrong with what was stored; nil if nothing was.
    public let loadProblem: FlagError?

    private let state: Mutex<State>
    /// Held while the storage is written, so that the newest state is the last one written.
    private let saving = Mutex(())
    private let storage: (any FlagStorage)?
    private let fetch: Fetch?
    private let wall: any WallClock
    private let telemetry: Telemetry
    private let hub = EventHub<Set<String>>()

    /// Reads what was stored; nothing is fetched yet.
    ///
    /// - Parameters:
    ///   - storage: what keeps flags between two lives; without one they are forgotten.
    ///   - fetch: gets the server's settings when `refresh()` is called.
    public init(
        storage: (any FlagStorage)? = nil,
        fetch: Fetch? = nil,
        wall: any WallClock = SystemWallClock(),
        telemetry: Telemetry = .off
    ) {
        self.storage = storage
        self.fetch = fetch
        self.wall = wall
        self.telemetry = telemetry
        var state = State()
        var problem: FlagError?
        do {
            if let bytes = try storage?.load() { state = try Self.decode(bytes) }
        } catch let error as FlagError {
            problem = error
        } catch {
            problem = FlagError(.unusable, "Stored feature flags cannot be read; defaults hold. \(error)", cause: error)
        }
        loadProblem = problem
        self.state = Mutex(state)
        if let problem { telemetry.record(.note(name: "flagsNotLoaded", detail: problem.description)) }
    }

    // MARK: Reading

    /// What a flag is now. A setting of another type counts as none, and is told of once.
    public subscript<Value>(key: FlagKey<Value>) -> Value { look(key).value }

    /// Who said what a flag is now.
    public func source<Value>(of key: FlagKey<Value>) -> Source { look(key).source }

    /// When the server's settings were fetched; nil if never.
    public var fetchedAt: WallTime? { state.withLock { $0.fetchedAt } }

    /// What was set on this device, by name.
    public var overrides: [String: FlagSetting] { state.withLock { $0.overrides } }

    /// What the server says, by name.
    public var remote: [String: FlagSetting] { state.withLock { $0.remote } }

    /// A flag's values, beginning with the present one. Equal values are not repeated; who reads slowly gets the newest.
    public func updates<Value>(of key: FlagKey<Value>) -> FlagUpdates<Value> {
        FlagUpdates(flags: self, key: key, changes: hub.subscribe(limit: 1))
    }

    /// The names of flags whose settings have changed, from now on.
    public var changes: EventSequence<Set<String>> { hub.subscribe(limit: 64) }

    // MARK: Setting

    /// Sets a flag on this device, whatever the server says; nil lets the server decide again.
    ///
    /// - Throws: `.notStored` when it holds until the process ends and not longer, `.unusable` when it does not hold.
    public func setOverride<Value>(_ value: Value?, for key: FlagKey<Value>) throws(FlagError) {
        if let setting = value?.flagSetting {
            if case .number(let number) = setting, !number.isFinite {
                throw FlagError(.unusable, "\(key.name) cannot be \(number): give a finite number.")
            }
            try FlagSetting.check([key.name: setting])
        }
        change { $0.overrides[key.name] = value?.flagSetting }
        try save()
    }

    /// Fetches the server's settings and puts them in place of those that were known.
    ///
    /// Of several that overlap, the one that began last counts.
    /// - Returns: the names of flags whose settings have changed.
    /// - Throws: `.noFetch`, `.fetchFailed` and `.unusable`, after which everything is as it was; `.notStored` when it holds until
    ///   the process ends and not longer.
    @discardableResult
    public func refresh() async throws(FlagError) -> Set<String> {
        guard let fetch else {
            throw FlagError(
                .noFetch,
                "There is nowhere to fetch feature flags from: give `FeatureFlags` a fetch closure."
            )
        }
        let number = state.withLock { state in
            state.lastFetch += 1
            return state.lastFetch
        }
        let settings: [String: FlagSetting]
        do {
            settings = try await fetch()
        } catch {
            throw FlagError(.fetchFailed, "Feature flags could not be fetched; known ones hold. \(error)", cause: error)
        }
        try FlagSetting.check(settings)
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

    private func save() throws(FlagError) {
        guard let storage else { return }
        do {
            try saving.withLock { _ in try storage.save(Self.encode(state.withLock { $0 })) }
        } catch {
            throw FlagError(
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

    private static func decode(_ bytes: [UInt8]) throws(FlagError) -> State {
        let value: JSONValue
        do {
            value = try JSONParser.parse(bytes)
        } catch {
            throw FlagError(.unusable, "Stored feature flags are damaged; defaults hold. \(error)", cause: error)
        }
        guard value["format"]?.integer == 1, let remote = value["remote"]?.object,
            let overrides = value["overrides"]?.object
        else {
            throw FlagError(.unusable, "Stored feature flags are of another program or version; defaults hold.")
        }
        return State(
            remote: try FlagSetting.settings(remote),
            overrides: try FlagSetting.settings(overrides),
            fetchedAt: value["fetchedAt"]?.integer.map { WallTime(nanosecondsSinceEpoch: $0) }
        )
    }
}
