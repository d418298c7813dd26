import LarderTime
import Synchronization

/// What was declared stale by a name that many things share, instead of thing by thing: when, and before which requests.
///
/// A thing that was confirmed by a request that began before the declaration is stale. Within a process the order of requests
/// decides, and what comes from the disk goes by the time. Safe from any thread.
final class InvalidationTable: Sendable {
    struct Mark: Sendable {
        var wall: WallTime
        /// The order of requests at the declaration; 0 where that was in another process.
        var order: UInt64
    }

    private struct State {
        var marks: [String: Mark] = [:]
        /// Everything older than this is stale: marks that were given up stand for it.
        var floor: WallTime = ValueTimes.never
        var versions: [EntityKey: Int64] = [:]
        var feeds: [String: FeedCoverage] = [:]
    }

    static let metadataKey = "larder.invalidations"
    private static let marksMaximum = 1_024
    private static let versionsMaximum = 16_384
    private let state = Mutex(State())

    static func tag(entityType: String) -> String { "=type " + entityType }

    /// Declares stale.
    func mark(_ tag: String, at now: WallTime, order: UInt64) {
        state.withLock { state in
            state.marks[tag] = Mark(wall: now, order: order)
            guard state.marks.count > Self.marksMaximum else { return }
            // The older half: what it named is stale for all then, which costs requests and is never wrong.
            let sorted = state.marks.sorted { $0.value.wall < $1.value.wall }.prefix(Self.marksMaximum / 2)
            for (tag, mark) in sorted {
                state.marks[tag] = nil
                state.floor = max(state.floor, mark.wall)
            }
        }
    }

    /// Whether anything was declared stale by a name.
    var hasMarks: Bool { state.withLock { !$0.marks.isEmpty || $0.floor != ValueTimes.never } }

    /// Whether something with these tags, that was confirmed by a request of that order, was declared stale since.
    func covers(_ tags: Set<String>, validatedAt: WallTime, order: UInt64) -> Bool {
        state.withLock { state in
            if state.marks.isEmpty && state.floor == ValueTimes.never { return false }
            if order == 0, validatedAt <= state.floor { return true }
            for tag in tags {
                guard let mark = state.marks[tag] else { continue }
                if order > 0 && mark.order > 0 ? mark.order > order : order == 0 && mark.wall >= validatedAt {
                    return true
                }
            }
            return false
        }
    }

    // MARK: Versions and feeds

    /// Notes that a version of an entity exists.
    func note(_ key: EntityKey, version: Int64) {
        state.withLock { state in
            if state.versions.count >= Self.versionsMaximum { state.versions.removeAll() }
            state.versions[key] = max(version, state.versions[key] ?? .min)
        }
    }

    func knownVersion(_ key: EntityKey) -> Int64? { state.withLock { $0.versions[key] } }

    func setFeed(_ name: String, _ coverage: FeedCoverage?) { state.withLock { $0.feeds[name] = coverage } }

    func feed(_ name: String) -> FeedCoverage? { state.withLock { $0.feeds[name] } }

    var feeds: [String: FeedCoverage] { state.withLock { $0.feeds } }

    // MARK: On disk

    /// The marks as bytes: a line for each, the time before the tag.
    var encoded: [UInt8] {
        state.withLock { state in
            var text = "\(state.floor.nanosecondsSinceEpoch)\n"
            for (tag, mark) in state.marks where !tag.contains("\n") {
                text += "\(mark.wall.nanosecondsSinceEpoch) \(tag)\n"
            }
            return Array(text.utf8)
        }
    }

    /// Takes the marks of another process, where they are later than one's own; what is not understood is left out.
    func merge(_ bytes: [UInt8]) {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        state.withLock { state in
            if let first = lines.first, let floor = Int64(first) {
                state.floor = max(state.floor, WallTime(nanosecondsSinceEpoch: floor))
            }
            for line in lines.dropFirst() {
                let parts = line.split(separator: " ", maxSplits: 1)
                guard parts.count == 2, let time = Int64(parts[0]) else { continue }
                let (tag, wall) = (String(parts[1]), WallTime(nanosecondsSinceEpoch: time))
                let known = state.marks[tag]
                // What is in memory alone still goes by one's own.
                if known.map({ $0.wall < wall }) ?? true {
                    state.marks[tag] = Mark(wall: wall, order: known?.order ?? 0)
                }
            }
        }
    }

    func removeAll() { state.withLock { $0 = State() } }
}
