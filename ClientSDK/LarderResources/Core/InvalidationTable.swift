import LarderStorage
import LarderTime
import Synchronization

/// Invalidations by tag or entity type: the time of each, and its place in the order of requests.
///
/// A value is stale if the request that confirmed it began before the invalidation. Requests of this process are
/// compared by their order, values from the disk by time. Safe from any thread.
final class InvalidationTable: Sendable {
    /// A tag or an entity type. A tag never equals a type, whatever its characters are.
    enum Name: Hashable, Sendable {
        case tag(String)
        case type(String)
    }

    struct Mark: Sendable {
        var wall: WallTime
        /// The order of requests at the invalidation, or when this process has heard of it; 0 if that was before its first request.
        var order: UInt64
    }

    private struct KnownVersion {
        var version: Int64
        /// Grows with each noted version.
        var number: UInt64
    }

    private struct State {
        var marks: [Name: Mark] = [:]
        /// Stands for marks that were dropped: values from the disk that were validated before this time are stale.
        var floor: WallTime = Freshness.Times.never
        /// The same for values of this process: those whose request began before this place in the order are stale.
        var floorOrder: UInt64 = 0
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

    /// Invalidates a name.
    func mark(_ name: Name, at now: WallTime, order: UInt64) {
        state.withLock { state in
            state.marks[name] = Mark(wall: now, order: order)
            guard state.marks.count > Self.marksMaximum else { return }
            // Replaces the older half by `floor`: more values become stale, which costs requests.
            let sorted = state.marks.sorted { $0.value.wall < $1.value.wall }.prefix(Self.marksMaximum / 2)
            for (name, mark) in sorted {
                state.marks[name] = nil
                state.floor = max(state.floor, mark.wall)
                state.floorOrder = max(state.floorOrder, mark.order)
            }
        }
    }

    /// Moves marks of the future to the present, because the clock was set back: they would cover what is confirmed from now on.
    func clockWasSetBack(to now: WallTime) {
        state.withLock { state in
            for (name, mark) in state.marks where mark.wall > now { state.marks[name]?.wall = now }
            state.floor = min(state.floor, now)
        }
    }

    /// Whether there are any invalidations.
    var hasMarks: Bool { state.withLock { !$0.marks.isEmpty || $0.floor != Freshness.Times.never } }

    /// Whether a value with these tags or of this type was invalidated after the request of that order had confirmed
    /// it.
    func covers(_ tags: Set<String>, type: String? = nil, validatedAt: WallTime, order: UInt64) -> Bool {
        state.withLock { state in
            if state.marks.isEmpty && state.floor == Freshness.Times.never { return false }
            if order == 0 ? validatedAt <= state.floor : order < state.floorOrder { return true }
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

    /// Merges the marks of another process that are later than those of this one. Lines that cannot be parsed are skipped.
    ///
    /// A mark of the future was stored before the clock was set back: a known one has been moved then, and an unknown one counts as new.
    ///
    /// - Parameters:
    ///   - now: the wall clock, read after the bytes were read.
    ///   - order: the place of this moment in the order of requests: replies to earlier ones do not end the invalidations.
    func merge(_ bytes: [UInt8], at now: WallTime, order: UInt64) {
        // A smaller step of the clock is not noticed, and moves nothing.
        let latest = now + Moment.tolerance
        // Split by bytes: a line feed after a carriage return, which may end a tag, is not a character of its own.
        let lines = bytes.split(separator: UInt8(ascii: "\n"))
        state.withLock { state in
            if let first = lines.first, let floor = Int64(String(decoding: first, as: UTF8.self)) {
                let floor = WallTime(nanosecondsSinceEpoch: floor)
                let known = state.floor
                if floor <= latest {
                    state.floor = max(known, floor)
                } else if known == Freshness.Times.never {
                    state.floor = now
                }
                if state.floor > known { state.floorOrder = max(state.floorOrder, order) }
            }
            for line in lines.dropFirst() {
                let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 1)
                guard parts.count == 2, let time = Int64(String(decoding: parts[0], as: UTF8.self)),
                    let name = Self.name(parts[1])
                else { continue }
                let wall = WallTime(nanosecondsSinceEpoch: time)
                guard let known = state.marks[name] else {
                    state.marks[name] = Mark(wall: wall <= latest ? wall : now, order: order)
                    continue
                }
                if known.wall < wall, wall <= latest { state.marks[name] = Mark(wall: wall, order: order) }
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
