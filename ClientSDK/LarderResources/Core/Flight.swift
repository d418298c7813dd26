package import LarderEvents
import LarderStorage
import LarderTime

/// A request of a node.
typealias Flight = SingleFlight<FlightInfo, Void, LarderError>

/// What a node knows about its request.
struct FlightInfo: Sendable {
    /// Its place in the order of changes.
    let stamp: Stamp
    /// When it began. The answer is not older than that.
    let moment: Moment
    /// How long it may take; nil: without a limit.
    let timeout: Duration?
    /// Whether its answer comes from the origin and from no cache on the way (`FetchContext.mustRevalidate`).
    let revalidates: Bool
}

extension SingleFlight where Failure == LarderError {
    package convenience init(_ info: Info, onAbandoned: @escaping @Sendable (SingleFlight) -> Void = { _ in }) {
        self.init(info, cancellation: { LarderError(CancellationError()) }, onAbandoned: onAbandoned)
    }
}

extension SingleFlight where Info == FlightInfo {
    var stamp: Stamp { info.stamp }
    var moment: Moment { info.moment }

    /// How long a new holder waits at most; nil if the request ends earlier by itself or there is no limit.
    func limit(within timeout: Duration?, at now: Moment) -> Duration? {
        guard let timeout else { return nil }
        guard let own = info.timeout else { return timeout }
        return own <= timeout || moment.uptime + own <= now.uptime + timeout ? nil : timeout
    }
}
