import Glibc
import Larder

/// The recorded runs of an account: how each ended, its last events, and the totals of all.
///
/// Reading changes nothing, and is safe while commands run.
struct RunHistory {
    /// One run of the command.
    struct Run {
        enum End: Sendable, Hashable {
            /// It ended by itself, at that time; with an error message or an empty text.
            case finished(WallTime, String)
            /// It is still running.
            case running
            /// It has no end record: it was stopped, killed or crashed.
            case interrupted
        }

        /// The command: `feed --live`; nil if newer events have overwritten the start of the run.
        let command: String?
        let end: End
        /// Its events, oldest first; never empty.
        let records: [FlightRecorder.Record]

        var startedAt: WallTime { records[0].wall }
    }

    /// The recorded runs, oldest first.
    private(set) var runs: [Run] = []
    private(set) var totals = TelemetryTotals()
    /// The errors of files that could not be read.
    private(set) var problems: [String] = []

    /// Reads the records of a directory.
    init(directory: String) {
        self.init(
            paths: RunRecorder.paths(in: directory).filter { path in
                var status = stat()
                // Files are created only when several commands run at once.
                return unsafe lstat(path, &status) == 0
            }
        )
    }

    /// Reads the files of flight recorders.
    init(paths: [String]) {
        for path in paths {
            // A command may end, or begin, while its records are read.
            let wasBusy = FlightRecorder.isOpen(path: path)
            do {
                let records = try FlightRecorder.records(path: path)
                read(records, isBusy: wasBusy || FlightRecorder.isOpen(path: path))
            } catch {
                problems.append("\(error.description) If it is a recorder, remove it so that runs are recorded again.")
            }
        }
        runs.sort { $0.startedAt < $1.startedAt }
    }

    private mutating func read(_ records: [FlightRecorder.Record], isBusy: Bool) {
        let lives = Dictionary(grouping: records, by: \.life)
        let newest = lives.keys.max()
        // In the order of the lives, so that the labels of the totals are those of the newest.
        for (life, records) in lives.sorted(by: { $0.key < $1.key }) {
            var (command, end): (String?, Run.End) = (nil, isBusy && life == newest ? .running : .interrupted)
            for record in records {
                guard let kind = TelemetryEvent.Kind(record) else { continue }
                totals.add(kind, record.labels)
                switch kind {
                case .note(RunRecorder.beginning, let detail): command = detail
                case .note(RunRecorder.ending, let detail): end = .finished(record.wall, detail)
                default: break
                }
            }
            runs.append(Run(command: command, end: end, records: records))
        }
    }

    /// Removes all records, also those of running commands.
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

    var ended: [Run] { runs.filter { $0.end != .running } }

    /// The runs without an end record.
    var interrupted: [Run] { runs.filter { $0.end == .interrupted } }
}
