import Foundation
public import LarderEvents
public import LarderResources
public import LarderStorage
public import LarderTelemetry
import Synchronization

/// Switches of features with three levels: overrides on this device, settings of the server, defaults.
///
/// Reading never waits and is valid from the start: stored settings are read at initialization, before any network. With damaged
/// storage or an unreachable server the last known settings or the defaults apply. Safe from any thread.
public final class FeatureFlags: Sendable {
    private struct Settings: Codable, Equatable {
        var remote: [String: Bool] = [:]
        var overrides: [String: Bool] = [:]

        /// Other settings, with what has changed from earlier ones to these.
        func rebased(on other: Settings, from earlier: Settings) -> Settings {
            var result = other
            if remote != earlier.remote { result.remote = remote }
            for name in Set(overrides.keys).union(earlier.overrides.keys)
            where overrides[name] != earlier.overrides[name] {
                result.overrides[name] = overrides[name]
            }
            return result
        }
    }

    private struct State {
        var settings = Settings()
        /// The settings as this process has read or stored them last.
        var saved = Settings()
        /// Fetches are numbered at their start: an old response never replaces a newer one.
        var lastFetch: UInt64 = 0
        var appliedFetch: UInt64 = 0
        /// Transactions are numbered: the newest one has stored what the earlier ones have.
        var lastSave: UInt64 = 0
        var appliedSave: UInt64 = 0
    }

    /// The maximum number of the server's settings.
    static let countMaximum = 4_096
    /// The maximum length of a name in bytes.
    static let nameMaximum = 1_024
    /// The key of the metadata. A record would be evicted, and removed when the cache is cleared.
    static let storageKey = "larder.flags"

    private let state: Mutex<State>
    private let store: DiskStore?
    private let fetch: (@Sendable () async throws -> [String: Bool])?
    private let telemetry: Telemetry
    private let hub = EventHub<Set<String>>()

    /// Reads the stored settings; fetches nothing.
    ///
    /// - Parameters:
    ///   - store: keeps settings across restarts; nil: they last until the process ends.
    ///   - fetch: fetches the server's settings in `refresh()`.
    ///   - telemetry: gets an event for each change, and one if the stored settings cannot be read.
    public init(
        store: DiskStore? = nil,
        fetch: (@Sendable () async throws -> [String: Bool])? = nil,
        telemetry: Telemetry = Telemetry(totals: false)
    ) {
        self.store = store
        self.fetch = fetch
        self.telemetry = telemetry
        var state = State()
        do {
            if let bytes = try store?.metadata(Self.storageKey) {
                state.settings = try JSONDecoder().decode(Settings.self, from: Data(bytes))
                state.saved = state.settings
            }
        } catch {
            // The defaults hold.
            telemetry.record(.note(name: "flagsNotLoaded", detail: "\(error)"))
        }
        self.state = Mutex(state)
    }

    /// The value of a switch.
    public subscript(key: Key) -> Bool {
        state.withLock { $0.settings.overrides[key.name] ?? $0.settings.remote[key.name] } ?? key.defaultValue
    }

    /// The names of switches with changed settings, from now on.
    public var changes: EventSequence<Set<String>> { hub.subscribe(limit: 64) }

    /// Overrides a switch on this device; nil removes the override.
    ///
    /// - Throws: `.storage` if the override lasts only until the process ends.
    public func setOverride(_ value: Bool?, for key: Key) throws(LarderError) {
        change { $0.settings.overrides[key.name] = value }
        try save(key.name)
    }

    /// Fetches the server's settings and replaces the known ones. Of overlapping calls, the one that started last wins.
    ///
    /// - Throws: the error of the fetch, or `.unexpectedReply` for too many or too long names, which change nothing; `.storage` if the
    ///   settings last only until the process ends.
    public func refresh() async throws(LarderError) {
        guard let fetch else { return }
        let number = state.withLock { state in
            state.lastFetch += 1
            return state.lastFetch
        }
        let settings: [String: Bool]
        do { settings = try await fetch() } catch { throw LarderError(error) }
        guard settings.count <= Self.countMaximum, settings.keys.allSatisfy({ $0.utf8.count <= Self.nameMaximum })
        else {
            let text =
                "\(settings.count) feature flags were fetched. At most \(Self.countMaximum) are taken, with names of at most "
                + "\(Self.nameMaximum) bytes. The known ones hold."
            throw LarderError(.unexpectedReply, text)
        }
        change { state in
            guard number > state.appliedFetch else { return }
            state.appliedFetch = number
            state.settings.remote = settings
        }
        if state.withLock({ $0.settings != $0.saved }) { try save() }
    }

    private func change(_ body: (inout State) -> Void) {
        let changed = state.withLock { state in
            let old = state.settings.remote.merging(state.settings.overrides) { $1 }
            body(&state)
            let new = state.settings.remote.merging(state.settings.overrides) { $1 }
            let changed = Set(old.keys).union(new.keys).filter { old[$0] != new[$0] }
            if !changed.isEmpty { hub.post(changed) }
            return changed
        }
        for name in changed.sorted() { telemetry.record(.flagChanged(key: name)) }
    }

    /// Changes the stored settings by what this process has changed, and takes over what others have stored since.
    ///
    /// - Parameter name: an override that is stored even if this process knows no difference.
    private func save(_ name: String? = nil) throws(LarderError) {
        guard let store else { return }
        do {
            // No lock is held, because a damaged store calls the app's code.
            let (mine, stored, number, unreadable) = try store.write {
                transaction throws -> (Settings, Settings, UInt64, DecodingError?) in
                let (mine, saved, number) = state.withLock { state in
                    state.lastSave += 1
                    return (state.settings, state.saved, state.lastSave)
                }
                var (settings, unreadable) = (saved, nil as DecodingError?)
                if let bytes = try transaction.metadata(Self.storageKey) {
                    // Those that cannot be decoded are replaced.
                    do { settings = try JSONDecoder().decode(Settings.self, from: Data(bytes)) } catch let error
                        as DecodingError
                    { unreadable = error }
                }
                settings = mine.rebased(on: settings, from: saved)
                if let name { settings.overrides[name] = mine.overrides[name] }
                try transaction.setMetadata(Array(JSONEncoder().encode(settings)), for: Self.storageKey)
                return (mine, settings, number, unreadable)
            }
            change { state in
                guard number > state.appliedSave else { return }
                state.appliedSave = number
                state.settings = state.settings.rebased(on: stored, from: mine)
                state.saved = stored
            }
            if let unreadable { telemetry.record(.note(name: "flagsNotLoaded", detail: "\(unreadable)")) }
        } catch {
            let text = "Feature flags hold until the process ends: they cannot be stored. \(error)"
            throw LarderError(.storage, text, cause: error)
        }
    }
}
