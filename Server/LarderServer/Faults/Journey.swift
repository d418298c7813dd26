import LarderCoding
import LarderHTTP

/// A network over time: a set of timed faults that simulates what a phone meets on the way.
///
/// Values are round numbers within the range of public measurements. Use a script for other values.
public enum Journey: String, Sendable, Hashable, CaseIterable {
    /// Every request fails.
    case offline
    /// A slow mobile network: 750 kB/s down, about 150 ms of latency.
    case threeG = "3g"
    /// A very slow mobile network: 30 kB/s down, about 500 ms of latency.
    case edge
    /// Bursts of lost packets.
    case lossyWifi = "lossy-wifi"
    /// A fast network for 30 s; then all open connections are dead, and a slower network follows.
    case wifiToCell = "wifi-to-cell"
    /// No network for 20 s every two minutes, and slow before and after it.
    case tunnel
    /// No network for 12 s every minute.
    case lift
    /// Alternates between good, slow, lossy and offline, with a period of five minutes.
    case train
    /// A captive portal: every request is answered with an HTML page, over https with a certificate for another host.
    case captivePortal = "captive-portal"
    /// Half of the requests fail with 503 or 429, the others are slow.
    case overloaded
    /// Alternates between five seconds online and five seconds offline.
    case flapping

    /// A description in one sentence.
    public var summary: String { definition.summary }

    /// The faults of the journey, starting when they are set.
    ///
    /// - Parameter match: which exchanges; all by default.
    public func faults(for match: FaultMatch = FaultMatch()) -> [Fault] {
        definition.faults.enumerated().map { index, fault in
            var fault = fault
            (fault.id, fault.match) = ("\(rawValue)-\(index + 1)", match)
            return fault
        }
        // Without a request the match would apply to nothing.
        .filter { $0.stage != .handshake || !match.requiresRequest }
    }

    private typealias Definition = (summary: String, faults: [Fault])

    private var definition: Definition {
        guard let definition = Self.definitions[self] else { preconditionFailure("journeys.json lacks '\(rawValue)'.") }
        return definition
    }

    /// `journeys.json`: the faults as requests have them.
    private static let definitions: [Journey: Definition] = {
        let reader = BodyReader(EmbeddedDocument.journeys.json.object ?? JSONObject())
        let definitions: [Journey: Definition] = allCases.reduce(into: [:]) { definitions, journey in
            let child = reader.child(journey.rawValue)
            let faults = child?.objects("faults")?.compactMap(Fault.read)
            definitions[journey] = (child?.string("summary") ?? "", faults ?? [])
        }
        reader.finish()
        if let error = reader.errors.all.first {
            preconditionFailure("journeys.json: \(error.pointer) \(error.detail)")
        }
        return definitions
    }()
}
