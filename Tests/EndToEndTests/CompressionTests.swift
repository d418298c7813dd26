import Larder
import LarderHTTP
import LarderHTTPCache
import LarderServer
import LarderTesting
import LarderTime
import LarderTransport
import Synchronization
import TestSupport
import Testing

@Suite("Compression, end to end", .oneMinute)
struct CompressionTests {
    private let path = "/v1/feed?limit=20"

    private func request(_ backend: MockBackend, _ fields: Fields = [:]) -> TransportRequest {
        var fields = fields
        fields.add(.authorization, "Bearer dev-ana")
        return TransportRequest(url: backend.url + path, fields: fields)
    }

    @Test func `content is compressed on the wire, and both sides count what that saved`() async throws {
        let backend = try MockBackend.startSmall()
        let seen = Mutex<[MonitoredTransport.Exchange]>([])
        let transport = MonitoredTransport(
            SocketTransport(clock: ManualClock()),
            monitor: nil,
            onExchange: { exchange in seen.withLock { $0.append(exchange) } }
        )
        let decoded = try await transport.send(request(backend))
        let plain = try await transport.send(request(backend, [.acceptEncoding: "identity"]))
        #expect(decoded.body == plain.body && !decoded.fields.contains(.contentEncoding))
        #expect(decoded.fields[.etag] != plain.fields[.etag])
        let exchanges = seen.withLock { $0 }
        #expect(exchanges.map(\.bytesDecoded) == [plain.body.count, nil])
        #expect(exchanges[0].bytesReceived < exchanges[1].bytesReceived / 2)
        let saved = exchanges[1].bytesReceived - exchanges[0].bytesReceived
        #expect(await backend.main.journal().map(\.bytesSavedByCoding) == [saved, 0])
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `the HTTP cache stores decoded content and revalidates it by the tag of its coding`() async throws {
        let backend = try MockBackend.startSmall()
        let clock = ManualClock(WallTime(seconds: 1_790_000_000))
        backend.main.clock.freeze(at: clock.now)
        let cache = HTTPCache(
            SocketTransport(clock: ManualClock()),
            HTTPCache.Configuration(storage: DiskHTTPCacheStorage(inMemory: 16 << 20), clock: clock)
        )
        let first = try await cache.send(request(backend))
        #expect(try await cache.send(request(backend)).body == first.body)
        clock.advance(by: .seconds(1_000))
        backend.main.clock.advance(by: .seconds(1_000))
        let again = try await cache.send(request(backend, [.cacheControl: "no-cache"]))
        #expect(again.body == first.body && again.fields[.etag] == first.fields[.etag])
        #expect(await backend.main.journal().map(\.status) == [200, 304])
        // A part of stored content is a part of the decoded content.
        let part = try await cache.send(request(backend, [.range: "bytes=10-19"]))
        #expect(part.status == .partialContent && part.body == Array(first.body[10..<20]))
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `compressed content that is cut or corrupted is an error, and never a part`() async throws {
        let backend = try MockBackend.startSmall()
        let transport = SocketTransport(clock: ManualClock())
        let feed = FaultMatch("GET", "/v1/feed")
        for action in [
            FaultAction.truncate(.byte(300)), .truncate(.insideChunkHeader), .corrupt(bytes: 1), .malformedChunk,
        ] {
            try backend.main.set(Fault(id: "f", action, when: feed))
            do throws(TransportError) {
                _ = try await transport.send(request(backend))
                Issue.record("\(action) was not noticed")
            } catch { #expect(error.code == .interrupted, "\(action): \(error)") }
        }
        backend.main.removeFaults()
        #expect(try await transport.send(request(backend)).status == .ok)
        #expect(await backend.activity() == [])
        await backend.stop()
    }
}
