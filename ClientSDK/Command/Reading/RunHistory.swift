import Larder
import LarderCoding
import LarderTime

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What is known of earlier runs: how each ended, what it did last, and what all did together.
///
/// Reading changes nothing, and may go on while commands run.
struct RunHistory {
    /// One run of the command.
    struct Run {
        /// How a run came to its end.
        enum End: Sendable, Hashable {
            /// By itself, at that time; with what went wrong, or an empty text.
            case inOrder(WallTime, String)
            /// It is running at present.
            case none
            /// Nobody wrote it down: it was stopped, killed, or crashed.
            case sudden
        }

        /// What ran: `feed --live`; nil where newer runs have taken the beginning's place.
        let command: String?
        let end: End
        /// What it did, oldest first; never empty.
        let records: [FlightRecord]

        var began: WallTime { records[0].wall }
    }

    /// The runs that are still known, oldest first.
    private(set) var runs: [Run] = []
    /// What they add up to.
    private(set) var totals = TelemetryTotals()
    /// What could not be read, and why.
    private(set) var problems: [String] = []

    /// Reads what is recorded in a directory; where there is nothing, nothing is known.
    init(directory: String) {
        for path in RunRecorder.paths(in: directory) {
            var status = stat()
            // Most commands need one file; the others are never made.
            guard unsafe lstat(path, &status) == 0 else { continue }
            do { read(try FlightRecorder.records(path: path), isBusy: FlightRecorder.isOpen(path: path)) } catch {
                problems.append("\(error.description) Remove it to have runs recorded again.")
            }
        }
        runs.sort { $0.began < $1.began }
    }

    private mutating func read(_ records: [FlightRecord], isBusy: Bool) {
        let lives = Dictionary(grouping: records, by: \.life)
        let newest = lives.keys.max()
        for (life, records) in lives {
            var (command, end): (String?, Run.End) = (nil, isBusy && life == newest ? .none : .sudden)
            for record in records {
                guard let kind = TelemetryEvent.Kind(record) else { continue }
                totals.add(kind)
                switch kind {
                case .note(RunRecorder.beginning, let words): command = words
                case .note(RunRecorder.ending, let words): end = .inOrder(record.wall, words)
                default: break
                }
            }
            runs.append(Run(command: command, end: end, records: records))
        }
    }

    /// Removes what is recorded; whoever records at present goes on, and leaves nothing.
    static func erase(directory: String) throws {
        for path in RunRecorder.paths(in: directory) {
            guard unsafe unlink(path) == 0 || errno == ENOENT else {
                throw Failure("\(path) cannot be removed: \(unsafe String(cString: strerror(errno))).")
            }
        }
        guard unsafe rmdir(directory) == 0 || errno == ENOENT else {
            throw Failure("\(directory) cannot be removed: \(unsafe String(cString: strerror(errno))).")
        }
    }

    /// The runs that have ended, or would have.
    var ended: [Run] { runs.filter { $0.end != .none } }

    /// Those that nobody wrote the end of.
    var sudden: [Run] { runs.filter { $0.end == .sudden } }
}
