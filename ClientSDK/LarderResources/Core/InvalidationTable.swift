import LarderStorage
import LarderTime
import Synchronization

/// What was declared stale by a name that many things share, instead of thing by thing: when, and before which requests.
///
/// A thing that was confirmed by a request that began before the declaration is stale. Within a process the order of requests
/// decides, and what comes from the disk goes by the time. Safe from any thread.
final class InvalidationTable: Sendable {
    /// A name that many things share. A tag is never taken for a type, whatever its characters are.
    enum Name: Hashable, Sendable {
        case tag(String)
        case type(String)
    }

    struct Mark: Sendable {
        var wall: WallTime
        /// The order of requests at the declaration; 0 where that was in another process.
        var order: UInt64
    }

    private struct KnownVersion {
        var version: Int64
        /// Grows with each that is noted.
        var number: UInt64
    }

    private struct State {
        var marks: [Name: Mark] = [:]
        /// Everything older than this is stale: marks that were given up stand for it.
        var floor: WallTime = Freshness.Times.never
        var versions: [EntityKey: KnownVersion] = [:]
        var lastVersion: UInt64 = 0
        /// When versions were last forgotten.
        var versionsForgottenAt = Freshness.Times.never
        var feeds: [String: FeedCoverage] = [:]
    }

    static let metadataKey = "larder.invalidations"
    private static let marksMaximum = 1_024
    private static let versionsMaximum = 16_384
    private let state = Mutex(State())

    /// Declares stale.
    func mark(_ name: Name, at now: WallTime, order: UInt64) {
        state.withLock { state in
            state.marks[name] = Mark(wall: now, order: order)
            guard state.marks.count > Self.marksMaximum else { return }
            // The older half: what it named is stale for all then, which costs requests and is never wrong.
            let sorted = state.marks.sorted { $0.value.wall < $1.value.wall }.prefix(Self.marksMaximum / 2)
            for (name, mark) in sorted {
                state.marks[name] = nil
                state.floor = max(state.floor, mark.wall)
            }
        }
    }

    /// Whether anything was declared stale by a name.
    var hasMarks: Bool { state.withLock { !$0.marks.isEmpty || $0.floor != Freshness.Times.never } }

    /// Whether something with these tags, or of that type, that was confirmed by a request of that order, was declared stale since.
    func covers(_ tags: Set<String>, type: String? = nil, validatedAt: WallTime, order: UInt64) -> Bool {
        state.withLock { state in
            if state.marks.isEmpty && state.floor == Freshness.Times.never { return false }
            if order == 0, validatedAt <= state.floor { return true }
            func covers(_ name: Name) -> Bool {
                guard let mark = state.marks[name] else { return false }
                return order > 0 && mark.order > 0 ? mark.order > order : order == 0 && mark.wall >= validatedAt
            }
            if let type, covers(.type(type)) { return true }
            return tags.contains { covers(.tag($0)) }
        }
    }

    // MARK: Versions and feeds

    /// Notes that a version of an entity exists.
    ///
    /// - Returns: whether others were forgotten for that: everything that goes by versions and was confirmed before is stale then.
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

    func feed(_ name: String) -> FeedCoverage? { state.withLock { $0.feeds[name] } }

    var feeds: [String: FeedCoverage] { state.withLock { $0.feeds } }

    // MARK: On disk

    /// The marks as bytes: the floor, and then a line for each mark: its time, `#` or `=`, and the tag or type with control characters
    /// and percent signs escaped.
    var encoded: [UInt8] {
        state.withLock { state in
            var bytes = Array("\(state.floor.nanosecondsSinceEpoch)\n".utf8)
            for (name, mark) in state.marks {
                bytes += Array("\(mark.wall.nanosecondsSinceEpoch) ".utf8)
                switch name {
                case .tag(let tag): bytes += Array("#".utf8) + Self.escaped(tag)
                case .type(let type): bytes += Array("=".utf8) + Self.escaped(type)
                }
                bytes.append(UInt8(ascii: "\n"))
            }
            return bytes
        }
    }

    /// Takes the marks of another process, where they are later than one's own; what is not understood is left out.
    func merge(_ bytes: [UInt8]) {
        // By bytes: a line feed is a part of a character where a tag ends with a carriage return.
        let lines = bytes.split(separator: UInt8(ascii: "\n"))
        state.withLock { state in
            if let first = lines.first, let floor = Int64(String(decoding: first, as: UTF8.self)) {
                state.floor = max(state.floor, WallTime(nanosecondsSinceEpoch: floor))
            }
            for line in lines.dropFirst() {
                let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 1)
                guard parts.count == 2, let time = Int64(String(decoding: parts[0], as: UTF8.self)),
                    let name = Self.name(parts[1])
                else { continue }
                let wall = WallTime(nanosecondsSinceEpoch: time)
                let known = state.marks[name]
                // What is in memory alone still goes by one's own.
                if known.map({ $0.wall < wall }) ?? true {
                    state.marks[name] = Mark(wall: wall, order: known?.order ?? 0)
                }
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
