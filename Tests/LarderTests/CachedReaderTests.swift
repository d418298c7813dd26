import Foundation
import Larder
import LarderHTTP
import LarderModels
import LarderTesting
import LarderTime
import Testing

@Suite("Cached reader")
struct CachedReaderTests {
    private let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
        .path

    private func profile(_ name: String) -> [UInt8] {
        Array(
            #"{"id":"user_1","handle":"ana","displayName":"\#(name)","bio":"","location":"","avatar":null,"cover":null,"version":1,"updatedAt":"2026-01-01T00:00:00.000Z","later":true}"#
                .utf8
        )
    }

    @Test func `a reply that is not what it should be leaves the cache as it was`() async throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let transport = ScriptedTransport([
            .success(TransportResponse(status: .ok, fields: [.etag: "\"1\""], body: profile("Ana"))),
            .success(TransportResponse(status: .ok, body: Array("<html>Sign in to the Wi-Fi</html>".utf8))),
            .success(TransportResponse(status: .notModified)),
        ])
        let clock = ManualClock()
        let client = try LarderClient(server: "http://x", directory: directory, transport: transport, clock: clock)
        #expect(try await client.profile("user_1").value.displayName == "Ana")
        clock.advance(by: .seconds(400))
        let captive = try await client.profile("user_1")
        #expect(captive.value.displayName == "Ana" && captive.refreshError?.code == .unexpectedReply)
        let revalidated = try await client.profile("user_1")
        #expect(revalidated.source == .network && revalidated.staleReason == nil)
        #expect(transport.requests.map { $0.fields[.ifNoneMatch] } == [nil, "\"1\"", "\"1\""])
    }

    @Test func `a fresh value costs no request`() async throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let transport = ScriptedTransport([.success(TransportResponse(status: .ok, body: profile("Ana")))])
        let client = try LarderClient(
            server: "http://x",
            directory: directory,
            transport: transport,
            clock: ManualClock()
        )
        for _ in 0..<5 { _ = try await client.profile("user_1") }
        #expect(transport.requests.count == 1)
    }
}
