import LarderCoding
import LarderStorage
import LarderTime
import Synchronization

/// Invalidations by tag or entity type: the latest stamp of each.
///
/// A value is stale if what has confirmed it began before the invalidation. The stamps are stored, and processes merge theirs: the later
/// one of each name counts. Safe from any thread.
final class InvalidationTable: Sendable {
    /// A tag or an entity type. A tag never equals a type, whatever its characters are.
    struct Name: Hashable, Sendable {
        let text: String

        static func tag(_ tag: String) -> Name { Name(text: "#" + tag) }
        static func type(_ type: String) -> Name { Name(text: "=" + type) }
    }

    private struct State {
        var marks: [Name: Stamp] = [:]
        /// What was confirmed before is stale. Stands for marks that were dropped too.
        var floor = Stamp.never
        /// The newest version of an entity that is known to exist, and when that was noted.
        var versions: [EntityKey: (version: Int64, noted: Stamp)] = [:]
        var feeds: [String: FeedCoverage] = [:]
    }

    static let metadataKey = "larder.marks"
    private static let marksMaximum = 1_024
    private static let versionsMaximum = 16_384
    private let state = Mutex(State())
    private let setBack = Atomic<Int64>(Stamp.never.rawValue)

    /// Invalidates a name.
    func mark(_ name: Name, at stamp: Stamp) { state.withLock { Self.mark(name, stamp, &$0) } }

    private static func mark(_ name: Name, _ stamp: Stamp, _ state: inout State) {
        state.marks[name] = max(stamp, state.marks[name] ?? .never)
        guard state.marks.count > marksMaximum else { return }
        // Replaces the older half by `floor`: more values become stale, which costs requests.
        for (name, mark) in state.marks.sorted(by: { $0.value < $1.value }).prefix(marksMaximum / 2) {
            state.marks[name] = nil
            state.floor = max(state.floor, mark)
        }
    }

    /// Invalidates everything.
    func markAll(at stamp: Stamp) { state.withLock { $0.floor = max($0.floor, stamp) } }

    /// Notes that the clock was set back: what was confirmed before has no known age, and what the feeds have covered is not known.
    func noteClockSetBack(at stamp: Stamp) {
        state.withLock { state in
            state.feeds = [:]
            setBack.max(stamp.rawValue, ordering: .releasing)
        }
    }

    /// When the clock was last set back.
    var clock: Stamp { Stamp(rawValue: setBack.load(ordering: .acquiring)) }

    var hasMarks: Bool { state.withLock { !$0.marks.isEmpty || $0.floor != .never } || clock != .never }

    var latest: Stamp { state.withLock { $0.marks.values.reduce($0.floor) { max($0, $1) } } }

    /// The latest invalidation of what has these tags or this type.
    func latest(_ tags: Set<String>, type: String? = nil) -> Stamp {
        state.withLock { state in
            if state.marks.isEmpty { return state.floor }
            let marks = tags.map { state.marks[.tag($0)] } + [type.flatMap { state.marks[.type($0)] }]
            return marks.reduce(state.floor) { max($0, $1 ?? .never) }
        }
    }

    // MARK: Versions and feeds

    /// Notes that a version of an entity exists.
    ///
    /// - Returns: whether older versions were forgotten. All values that were confirmed before those were noted are then stale.
    func note(_ key: EntityKey, version: Int64, at stamp: Stamp) -> Bool {
        state.withLock { state in
            if let known = state.versions[key], known.version > version { return false }
            state.versions[key] = (version, stamp)
            guard state.versions.count > Self.versionsMaximum else { return false }
            let older = state.versions.sorted { $0.value.noted < $1.value.noted }.prefix(Self.versionsMaximum / 2)
            for (key, known) in older {
                state.versions[key] = nil
                state.floor = max(state.floor, known.noted)
            }
            return true
        }
    }

    var hasVersions: Bool { state.withLock { !$0.versions.isEmpty } }

    /// When a newer version of an entity than this one was noted; nil if none is known. A value without a version is older if it was asked for
    /// before.
    func newer(than version: Int64?, asked: Stamp, of key: EntityKey) -> Stamp? {
        guard let known = state.withLock({ $0.versions[key] }) else { return nil }
        let isOlder = version.map { $0 < known.version } ?? (asked < known.noted)
        return isOlder ? known.noted : nil
    }

    func setFeed(_ name: String, _ coverage: FeedCoverage?) { state.withLock { $0.feeds[name] = coverage } }

    var feeds: [String: FeedCoverage] { state.withLock { $0.feeds } }

    // MARK: On disk

    /// The marks as JSON: the floor, when the clock was set back, and then a pair of name and stamp for each mark.
    var encoded: [UInt8] {
        state.withLock { state in
            let marks = state.marks.map { name, stamp in
                JSONValue.array([.string(name.text), .integer(stamp.rawValue)])
            }
            var writer = JSONWriter()
            writer.value(.array([.integer(state.floor.rawValue), .integer(clock.rawValue)] + marks))
            return writer.bytes
        }
    }

    /// Merges stored marks. What cannot be decoded is skipped.
    ///
    /// - Parameter present: the present stamp. A later time at which the clock was set back is damaged: nothing would have an age again.
    func merge(_ bytes: [UInt8], present: Stamp) {
        let stored: [JSONValue]
        do { stored = try JSONParser.parse(bytes).array ?? [] } catch { return }
        state.withLock { state in
            if let floor = stored.first?.integer { state.floor = max(state.floor, Stamp(rawValue: floor)) }
            if let clock = stored.dropFirst().first?.integer, clock <= present.rawValue {
                setBack.max(clock, ordering: .releasing)
            }
            for mark in stored.dropFirst(2) {
                guard let name = mark[0]?.string, let stamp = mark[1]?.integer else { continue }
                Self.mark(Name(text: name), Stamp(rawValue: stamp), &state)
            }
        }
    }

    func removeAll() { state.withLock { $0 = State() } }
}

extension StoredEntity {
    /// Applies what is invalidated apart from its row: its type, and versions for which a newer one is known.
    mutating func apply(_ table: InvalidationTable, to key: EntityKey) {
        invalid = max(invalid, table.latest([], type: key.type))
        if let noted = table.newer(than: version, asked: asked, of: key) {
            // Stale whenever it was confirmed.
            (asked, invalid) = (.never, max(invalid, noted))
        }
    }
}
