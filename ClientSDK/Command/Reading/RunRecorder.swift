import Foundation
import Larder
import LarderArguments
import LarderTime

/// What a run tells of itself while it lasts, in a file that outlives it however it ends: for `larder doctor`.
///
/// Where no file can be used the run goes on without one. Safe from any thread.
final class RunRecorder: Sendable {
    /// Measures and adds up what happens, and writes it to the file.
    let telemetry: Telemetry
    /// Why nothing is written; nil while there is nothing to complain of.
    let failure: String?

    /// How many commands of one account can run at once and be recorded, each in a file of its own.
    static let filesMaximum = 4
    /// How many events a file holds: some dozens of runs in 256 KiB.
    private static let capacity = 1_024

    /// Begins to record.
    ///
    /// - Parameter command: what runs, in words that are no secret; nil where nothing is to be written.
    init(_ command: String?, in directory: String) {
        guard let command else {
            telemetry = Telemetry()
            failure = nil
            return
        }
        switch Self.open(in: directory) {
        case .success(let recorder):
            telemetry = Telemetry(recorder: recorder)
            failure = nil
            telemetry.record(.note(name: Self.beginning, detail: command))
        case .failure(let error):
            telemetry = Telemetry()
            failure = error.message
        }
    }

    private static func open(in directory: String) -> Result<FlightRecorder, Failure> {
        do {
            try FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch { return .failure(Failure("\(directory) cannot be made: \(error)")) }
        for path in paths(in: directory) {
            do { return .success(try FlightRecorder(path: path, capacity: capacity)) } catch {
                // Another command is writing to it: it has the next.
                guard error.code == .busy else { return .failure(Failure(error.description)) }
            }
        }
        return .failure(Failure("\(filesMaximum) commands are running already; this one is not recorded."))
    }

    /// Where runs are recorded.
    static func paths(in directory: String) -> [String] { (1...filesMaximum).map { "\(directory)/run.\($0)" } }

    // MARK: Marks

    /// The note that a run begins with; its detail is the command.
    static let beginning = "began"
    /// The note that a run ends with; its detail is what went wrong.
    static let ending = "ended"

    /// Writes that the run ends in order, and with what.
    func end(_ error: (any Error)? = nil) {
        telemetry.record(.note(name: Self.ending, detail: error.map(Self.words) ?? ""))
    }

    private static func words(_ error: any Error) -> String {
        switch error {
        case let error as Failure: error.message
        case let error as UsageError: error.message
        default: "\(error)"
        }
    }

    // MARK: What others tell

    func note(_ event: CacheEvent) { telemetry.record(event) }

    func note(_ event: ImageEvent) { telemetry.record(event) }

    private static let images = "images"

    /// What a request is for: the name that the resource has, so that both are counted in one place.
    static func feature(_ request: TransportRequest) -> String {
        guard let start = request.url.firstRange(of: "/v1/")?.upperBound else {
            return request.url.hasSuffix("/healthz") ? "health" : TelemetryTotals.other
        }
        let path = request.url[start...].prefix { $0 != "?" }.split(separator: "/")
        let isPart = path.count > 2
        return switch path.first {
        case "feed": "feed"
        case "posts": "post"
        case "likes": "like"
        case "me": "profile"
        case "profiles": path.count > 1 ? "profile" : "people"
        case "accounts": isPart ? "transactions" : "accounts"
        case "transfers": "transfer"
        case "conversations": isPart ? "messages" : "conversations"
        case "changes", "live": "changes"
        case "images": images
        case "sessions": "session"
        default: TelemetryTotals.other
        }
    }
}
