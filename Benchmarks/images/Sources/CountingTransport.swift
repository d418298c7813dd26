import Larder
import Synchronization

/// Counts requests and the bytes of contents, also of those that are not received to their end.
final class CountingTransport: Transport {
    private let base: any Transport
    private let counts = Mutex<(requests: Int, bytes: Int)>((0, 0))

    init(_ base: any Transport) { self.base = base }

    var requests: Int { counts.withLock { $0.requests } }
    var bytes: Int { counts.withLock { $0.bytes } }

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        counts.withLock { $0.requests += 1 }
        let stream = try await base.open(request)
        let body = TransportStream.Body { [self] () async throws(TransportError) -> [UInt8]? in
            let piece = try await stream.body.next()
            counts.withLock { $0.bytes += piece?.count ?? 0 }
            return piece
        }
        return TransportStream(status: stream.status, fields: stream.fields, body: body)
    }
}
