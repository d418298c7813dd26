import Foundation
import Larder
import LarderServer

/// Records the events of a run for `larder doctor`, in a file that survives a crash.
///
/// If no file can be opened, the run is not recorded. Safe from any thread.
final class RunRecorder: Sendable {
    /// Counts events and writes them to the file.
    let telemetry: Telemetry
    /// Why the run is not recorded; nil if it is.
    let failure: String?

    /// The maximum number of commands of an account that are recorded at once, each in its own file.
    static let filesMaximum = 4
    /// The maximum number of events of a file: dozens of runs in 256 KiB.
    private static let capacity = 1_024

    /// Starts the record.
    ///
    /// - Parameter command: the command without secrets; nil: the run is not recorded.
    init(_ command: String?, in directory: String) {
        guard let command else {
            telemetry = Telemetry()
            failure = nil
            return
        }
        switch Self.open(in: directory) {
        case .success(let recorder):
            telemetry = Telemetry(recorder: recorder)
            let session = String(UInt64.random(in: 0 ... .max), radix: 16)
            telemetry.setLabels(session: session, appVersion: MockBackend.version)
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
        } catch { return .failure(Failure("\(directory) cannot be created: \(error)")) }
        for path in paths(in: directory) {
            do { return .success(try FlightRecorder(path: path, capacity: capacity)) } catch {
                // Another command is writing to this file: try the next.
                guard error.code == .busy else { return .failure(Failure(error.description)) }
            }
        }
        return .failure(Failure("\(filesMaximum) commands are already recorded; this one is not recorded."))
    }

    static func paths(in directory: String) -> [String] { (1...filesMaximum).map { "\(directory)/run.\($0)" } }

    // MARK: Marks

    /// The name of the first note of a run; its detail is the command.
    static let beginning = TelemetryEvent.beginning
    /// The name of the last note of a run; its detail is the error message.
    static let ending = TelemetryEvent.ending

    /// Writes the end of the run.
    func end(_ error: (any Error)? = nil) {
        telemetry.record(.note(name: Self.ending, detail: error.map { "\($0)" } ?? ""))
    }
}
