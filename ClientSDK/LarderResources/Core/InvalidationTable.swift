import LarderStorage
import LarderTime
import Synchronization

/// Invalidations by tag or entity type: the latest stamp of each.
///
/// A value is stale if what has confirmed it began before the invalidation. The stamps are stored, and processes merge theirs: the later
/// one of each name counts. Safe from any thread.
final class InvalidationTable: Sendable {
    /// A tag or an entity type. A tag never equals a type, whatever its characters are.
    enum Name: Hashable, Sendable {
        case tag(String)
        case type(String)
    }

    private struct KnownVersion {
        var version: Int64
        /// Grows with each noted version.
        var number: UInt64
    }

    private struct State {
        var marks: [Name: Stamp] = [:]
        /// Stands for marks that were dropped: what was confirmed before is stale.
        var floor = Stamp.never
        var versions: [EntityKey: KnownVersion] = [:]
        var lastVersion: UInt64 = 0
        /// When versions were last forgotten.
        var versionsForgottenAt = Freshness.Times.never
        var feeds: [String: FeedCoverage] = [:]
    }

    static let metadataKey = "larder.invalid"
    private static let marksMaximum = 1_024
    private static let versionsMaximum = 16_384
    private let state = Mutex(State())

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

    /// Whether there are any invalidations.
    var hasMarks: Bool { state.withLock { !$0.marks.isEmpty || $0.floor != .never } }

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
    /// - Returns: whether older versions were forgotten. All values that are fresh by version and were validated before
    ///   are then stale.
    func note(_ key: EntityKey, version: Int64, at now: WallTime) -> Bool {
        state.withLock { state in
            state.lastVersion += 1
            let known = state.versions[key]?.version ?? .min
            state.versions[key] = KnownVersion(version: max(version, known), number: state.lastVersion)
            guard state.versions.count > Self.versionsMaximum else { return false }
            let numbers = state.versions.values.map(\.number).sorted()
            let limit = numbers[numbers.count / 2]
            state.versions = state.versions.filter { $0.value.number > limit }
            state.versionsForgottenAt = max(now, state.versionsForgottenAt)
            return true
        }
    }

    /// The newest version of an entity that is known to exist, and when versions were last forgotten.
    func knownVersion(_ key: EntityKey) -> (version: Int64?, forgottenAt: WallTime) {
        state.withLock { ($0.versions[key]?.version, $0.versionsForgottenAt) }
    }

    func setFeed(_ name: String, _ coverage: FeedCoverage?) { state.withLock { $0.feeds[name] = coverage } }

    var feeds: [String: FeedCoverage] { state.withLock { $0.feeds } }

    // MARK: On disk

    /// The marks as bytes: the floor, and then a line for each mark: its stamp, `#` or `=`, and the tag or type with control characters
    /// and percent signs escaped.
    var encoded: [UInt8] {
        state.withLock { state in
            var bytes = Array("\(state.floor.rawValue)\n".utf8)
            for (name, stamp) in state.marks {
                bytes += Array("\(stamp.rawValue) ".utf8)
                switch name {
                case .tag(let tag): bytes += Array("#".utf8) + Self.escaped(tag)
                case .type(let type): bytes += Array("=".utf8) + Self.escaped(type)
                }
                bytes.append(UInt8(ascii: "\n"))
            }
            return bytes
        }
    }

    /// Merges stored marks. Lines that cannot be parsed are skipped.
    func merge(_ bytes: [UInt8]) {
        // Split by bytes: a line feed after a carriage return, which may end a tag, is not a character of its own.
        let lines = bytes.split(separator: UInt8(ascii: "\n"))
        state.withLock { state in
            if let first = lines.first, let floor = Int64(String(decoding: first, as: UTF8.self)) {
                state.floor = max(state.floor, Stamp(rawValue: floor))
            }
            for line in lines.dropFirst() {
                let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 1)
                guard parts.count == 2, let stamp = Int64(String(decoding: parts[0], as: UTF8.self)),
                    let name = Self.name(parts[1])
                else { continue }
                Self.mark(name, Stamp(rawValue: stamp), &state)
            }
        }
    }

    private static func name(_ bytes: ArraySlice<UInt8>) -> Name? {
        guard let text = unescaped(bytes.dropFirst()) else { return nil }
        switch bytes.first {
        case UInt8(ascii: "#"): return .tag(text)
        case UInt8(ascii: "="): return .type(text)
        default: return nil
        }
    }

    private static func escaped(_ text: String) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return text.utf8.flatMap { byte -> [UInt8] in
            guard byte < 0x20 || byte == UInt8(ascii: "%") else { return [byte] }
            return [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }

    private static func unescaped(_ bytes: ArraySlice<UInt8>) -> String? {
        var result: [UInt8] = []
        var rest = bytes.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                result.append(byte)
                continue
            }
            guard let high = rest.next(), let low = rest.next(),
                let value = UInt8(String(decoding: [high, low], as: UTF8.self), radix: 16)
            else { return nil }
            result.append(value)
        }
        return String(decoding: result, as: UTF8.self)
    }

    func removeAll() { state.withLock { $0 = State() } }
}
