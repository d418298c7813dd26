import LarderDevice
import LarderEvents
import LarderHTTP
import LarderTime
import LarderTransport
import Synchronization

/// The requests of a client that are in flight, and the last ones that have ended. Safe from any thread.
final class RecentRequests: Sendable {
    private struct State {
        var lastNumber: UInt64 = 0
        var inFlight: [UInt64: ClientReport.Request] = [:]
        var ended: [ClientReport.Request] = []
    }

    private static let endedMaximum = 50
    private let wall: any WallClock
    private let state = Mutex(State())

    init(_ wall: any WallClock) { self.wall = wall }

    /// Those in flight, and then the ended ones, each newest first.
    var items: [ClientReport.Request] {
        state.withLock { state in
            state.inFlight.sorted { $0.key > $1.key }.map(\.value) + state.ended.reversed()
        }
    }

    /// Notes the beginning of a request. The result notes its end.
    func begin(_ request: TransportRequest) -> @Sendable (MonitoredTransport.Exchange) -> Void {
        let url = HTTPURL.redacted(request.url)
        let item = ClientReport.Request(
            id: request.fields[.requestID],
            method: request.method.rawValue,
            url: String(url.prefix { $0 != "?" && $0 != "#" }),
            reason: RequestReason.current?.description,
            began: wall.now.rfc3339()
        )
        let number = state.withLock { state in
            state.lastNumber += 1
            state.inFlight[state.lastNumber] = item
            return state.lastNumber
        }
        return { self.end(number, $0) }
    }

    private func end(_ number: UInt64, _ exchange: MonitoredTransport.Exchange) {
        state.withLock { state in
            guard var item = state.inFlight.removeValue(forKey: number) else { return }
            item.milliseconds = exchange.duration.nanosecondsSaturating / 1_000_000
            item.status = exchange.status
            item.failure = exchange.failure
            state.ended.append(item)
            if state.ended.count > Self.endedMaximum { state.ended.removeFirst() }
        }
    }
}
