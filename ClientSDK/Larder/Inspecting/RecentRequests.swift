import LarderEvents
import LarderHTTP
import LarderTime
import LarderTransport
import Synchronization

/// The requests of a client that are in flight, and the last ones that have ended. Safe from any thread.
final class RecentRequests: Sendable {
    private struct State {
        var lastNumber: UInt64 = 0
        var inFlight: [UInt64: (item: ClientReport.Request, start: MonotonicTime)] = [:]
        var ended: [ClientReport.Request] = []
    }

    private static let endedMaximum = 50
    private let wall: any WallClock
    private let clock: any MonotonicClock
    private let state = Mutex(State())

    init(_ wall: any WallClock, _ clock: any MonotonicClock) { (self.wall, self.clock) = (wall, clock) }

    /// Those in flight, and then the ended ones, each newest first.
    var items: [ClientReport.Request] {
        state.withLock { state in
            state.inFlight.sorted { $0.key > $1.key }.map(\.value.item) + state.ended.reversed()
        }
    }

    func logging(_ transport: any Transport) -> any Transport { LoggedTransport(log: self, base: transport) }

    fileprivate func begin(_ request: TransportRequest) -> UInt64 {
        let url = HTTPURL.redacted(request.url)
        let item = ClientReport.Request(
            id: request.fields[.requestID],
            method: request.method.rawValue,
            url: String(url.prefix { $0 != "?" && $0 != "#" }),
            reason: RequestReason.current?.description,
            began: wall.now.rfc3339()
        )
        let start = clock.uptime
        return state.withLock { state in
            state.lastNumber += 1
            state.inFlight[state.lastNumber] = (item, start)
            return state.lastNumber
        }
    }

    fileprivate func end(_ number: UInt64, status: Status? = nil, failure: String? = nil) {
        let now = clock.uptime
        state.withLock { state in
            guard let (begun, start) = state.inFlight.removeValue(forKey: number) else { return }
            var item = begun
            item.milliseconds = (now - start).nanosecondsSaturating / 1_000_000
            item.status = status.map { Int($0.code) }
            item.failure = failure
            state.ended.append(item)
            if state.ended.count > Self.endedMaximum { state.ended.removeFirst() }
        }
    }
}

private struct LoggedTransport: Transport {
    let log: RecentRequests
    let base: any Transport

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let number = log.begin(request)
        do throws(TransportError) {
            let response = try await base.send(request)
            log.end(number, status: response.status)
            return response
        } catch {
            log.end(number, failure: error.code.rawValue)
            throw error
        }
    }

    /// A stream counts as ended when its head has arrived.
    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        let number = log.begin(request)
        do throws(TransportError) {
            let stream = try await base.open(request)
            log.end(number, status: stream.status)
            return stream
        } catch {
            log.end(number, failure: error.code.rawValue)
            throw error
        }
    }
}
