package import LarderDevice
package import LarderTelemetry

extension Telemetry {
    /// Records a change of the network level, for `NetworkMonitor.onEvent`.
    package func record(_ event: NetworkMonitor.Event) {
        record(.networkLevel(event.level, from: event.previous, cause: event.cause.rawValue))
    }

    /// Records an event of a memory guard, for its `onEvent`.
    package func record(_ event: MemoryGuard.Event) {
        switch event {
        case .level(let level, let previous, let cause): record(.memoryLevel(level, from: previous, cause: cause))
        case .usage(let level, let usage):
            record(.memoryWarning(level, cost: usage.cost, requests: usage.requests, loads: usage.loads))
        case .reaction(let level, let loads, let bytes):
            record(.memoryReaction(level, loadsCancelled: loads, bytesFreed: bytes))
        }
    }

    /// Records an HTTP exchange, for `MonitoredTransport.onExchange`.
    ///
    /// - Parameter feature: the feature that the request belongs to; one of a small set of names.
    package func record(_ exchange: MonitoredTransport.Exchange, feature: String = "http") {
        record(
            .request(
                feature: feature,
                status: exchange.status,
                failure: exchange.failure,
                duration: exchange.duration,
                bytesReceived: exchange.bytesReceived,
                bytesSent: exchange.request.upload?.bytesSent ?? exchange.request.body.count,
                bytesDecoded: exchange.bytesDecoded
            )
        )
    }
}
