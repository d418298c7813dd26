import Foundation
import LarderResources
import LarderStorage
import LarderTelemetry

extension APIClient {
    private static let recorderName = "/flight.recorder"
    /// The number of recorded events.
    private static let recorderCapacity = 511

    static func recorderPath(_ services: Services, _ settings: CacheConfiguration) -> String? {
        guard case .own = services.telemetry, case .own = services.recorder, case .disk(let store) = settings.storage
        else {
            return nil
        }
        return store.directory + recorderName
    }

    /// The telemetry of a client, with its recorder.
    ///
    /// - Parameter path: the file of the client's own recorder; nil: it has none.
    static func telemetry(_ services: Services, _ settings: CacheConfiguration, _ path: String?) -> Telemetry {
        switch services.telemetry {
        case .none: return Telemetry(totals: false)
        case .given(let telemetry): return telemetry
        case .own: break
        }
        var recorder: FlightRecorder?
        var problem: String?
        if case .given(let given) = services.recorder { recorder = given }
        if let path { do { recorder = try Self.recorder(at: path) } catch { problem = "\(error)" } }
        let telemetry = Telemetry(recorder: recorder, wall: settings.wallClock, monotonic: settings.monotonicClock)
        // The client works without it.
        if let problem { telemetry.record(.note(name: "noFlightRecorder", detail: problem)) }
        return telemetry
    }

    /// Opens a recorder. Its directory is made with mode 0700 if it does not exist, as the store does.
    private static func recorder(at path: String) throws -> FlightRecorder {
        try FileManager.default.createDirectory(
            atPath: String(path.dropLast(recorderName.count)),
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        return try FlightRecorder(path: path, capacity: recorderCapacity)
    }

    /// Removes the recorded events of the account, also those of an earlier version of the app whose settings were others. An open recorder
    /// loses its later events with the file.
    static func eraseRecorder(in directory: String?) throws(LarderError) {
        guard let path = directory.map({ $0 + recorderName }), FileManager.default.fileExists(atPath: path) else {
            return
        }
        do { try FileManager.default.removeItem(atPath: path) } catch {
            throw LarderError(.storage, "The recorded events could not be removed: \(error)", cause: error)
        }
    }
}
