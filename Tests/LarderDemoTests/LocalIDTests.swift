import Foundation
import Larder
import LarderDemo
import LarderTesting
import LarderTransport
import TestSupport
import Testing

@Suite("Local IDs", .oneMinute)
struct LocalIDTests {
    @Test func `the deletion of a task whose creation has not reached the server is rejected, and nothing is sent`()
        async throws
    {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let transport = ScriptedTransport { _, _ in
            .text(
                #"{"type": "https://larder.test/problems/not-found", "status": 404}"#,
                status: .notFound,
                fields: [.contentType: "application/problem+json"]
            )
        }
        let client = try await LarderClient(
            server: "http://test",
            account: "ana",
            directory: path,
            LarderClient.Configuration(transport: transport)
        )
        try client.tasks.delete(APIClient.localID())
        client.cache.outbox.resume()
        try await client.cache.outbox.drained()
        #expect(client.cache.outbox.rejected.map(\.operation) == ["larder.write"])
        #expect(!transport.requests.contains { $0.method == .delete })
        client.close()
    }
}
