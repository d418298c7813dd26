import Foundation
import Larder
import LarderCoding
import LarderHTTP
import LarderResources
import LarderServer
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport
import Testing

@Suite("Inspector of clients", .oneMinute)
struct InspectorTests {
    private struct Post: CacheEntity {
        static let entityType = "post"
        var id: String
        var text: String
        var likedByMe: Bool
    }

    private let directory: ScratchDirectory
    private let transport = SocketTransport(clock: ManualClock())

    init() throws { directory = try ScratchDirectory() }

    private func client(
        _ backend: MockBackend,
        _ change: (inout APIClient.Configuration) -> Void = { _ in }
    ) async throws -> APIClient {
        var configuration = APIClient.Configuration(transport: transport)
        configuration.cache.monotonicClock = ManualClock()
        configuration.services.maintenance = nil
        configuration.services.networkSource = NetworkMonitor.ManualSource()
        configuration.services.memory = .none
        configuration.inspector = backend.url
        change(&configuration)
        let client = try await APIClient(
            server: backend.url,
            account: "ana",
            directory: directory.path,
            configuration
        )
        try await client.session.use(token: "dev-ana", userID: "user_1")
        return client
    }

    private func post(_ client: APIClient) -> Resource<Post> {
        .entity("post_1") { try await client.source.fetch("/v1/posts/post_1", context: $0) }
    }

    private func clients(_ backend: MockBackend) async throws -> [JSONValue] {
        let reply = try await transport.send(TransportRequest(url: backend.url + "/_larder/clients"))
        return try JSONParser.parse(reply.body)["items"]?.array ?? []
    }

    /// The report of the only client.
    private func report(_ backend: MockBackend) async throws -> JSONValue {
        var found: JSONValue?
        try await reached {
            found = try await clients(backend).first { $0["account"] != nil }
            return found != nil
        }
        return try #require(found)
    }

    /// - Returns: the status, and the server's word about a failure.
    private func act(_ backend: MockBackend, _ action: String, _ members: String = "{}") async throws -> (Int, String?)
    {
        let id = try #require(try await report(backend)["id"]?.integer)
        var request = TransportRequest(method: .post, url: "\(backend.url)/_larder/clients/\(id)/\(action)")
        request.body = Array(members.utf8)
        let reply = try await transport.send(request)
        let detail = reply.body.isEmpty ? nil : try JSONParser.parse(reply.body)["detail"]?.string
        return (Int(reply.status.code), detail)
    }

    @Test func `a client shows values, outbox and requests with verdicts, and no token`() async throws {
        let backend = try MockBackend.startSmall()
        let client = try await client(backend)
        _ = try await client.cache.value(post(client))
        client.cache.outbox.pause()
        try client.write(.put, "/v1/posts/post_1/like", changing: Post.self, "post_1") { $0.likedByMe = true }
        let report = try await report(backend)
        #expect(report["account"]?.string == "ana" && report["session"]?.string == "signed in as user_1")
        let value = try #require(report["values"]?.array?.first { $0["key"]?.string == "post?id=post_1" })
        #expect(value["freshness"]?.string == "fresh" && value["pendingChanges"]?.integer == 1)
        #expect(value["text"] == nil, "A value is shown only if somebody asks for it.")
        let operation = try #require(report["operations"]?.array?.first)
        #expect(operation["state"]?.string == "pending" && operation["attempts"]?.integer == 0)
        let request = try #require(report["requests"]?.array?.first { $0["url"]?.string?.hasSuffix("post_1") == true })
        #expect(request["status"]?.integer == 200 && request["reason"]?.string?.contains("missing") == true)
        #expect(request["entry"]?.integer != nil && request["verdicts"]?[0]?["text"]?.string == "nothing was held")
        #expect(!"\(report)".contains("dev-ana"))
        client.close()
        try await reached { try await clients(backend).isEmpty }
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a client does what it is asked to`() async throws {
        let backend = try MockBackend.startSmall()
        let client = try await client(backend)
        let resource = post(client)
        _ = try await client.cache.value(resource)
        let key = #"{"key": "post?id=post_1"}"#
        #expect(try await act(backend, "invalidate", key).0 == 204)
        #expect(client.cache.stored(resource)?.freshness == .stale(.invalidated))
        #expect(try await act(backend, "refresh", key).0 == 204)
        #expect(client.cache.stored(resource)?.freshness == .fresh)
        #expect(try await act(backend, "show", key).0 == 204)
        #expect(try await report(backend)["values"]?[0]?["text"]?.string?.contains("post_1") == true)
        #expect(try await act(backend, "hide", key).0 == 204)
        #expect(try await report(backend)["values"]?[0]?["text"] == nil)
        #expect(try await act(backend, "offline").0 == 204)
        #expect(client.network?.isOffline == true)
        try client.write(.put, "/v1/posts/post_1/like", changing: Post.self, "post_1") { $0.likedByMe = true }
        let operation = try #require(client.cache.outbox.entries.first)
        #expect(try await act(backend, "drop", #"{"operation": \#(operation.id)}"#).0 == 204)
        #expect(client.cache.outbox.entries.isEmpty)
        #expect(try await act(backend, "online").0 == 204)
        #expect(client.network?.isOffline == false)
        client.close()
        await backend.stop()
    }

    @Test func `larder-server clients shows a client and asks it`() async throws {
        let backend = try MockBackend.startSmall()
        let client = try await client(backend)
        let resource = post(client)
        _ = try await client.cache.value(resource)
        let id = try #require(try await report(backend)["id"]?.integer)
        func run(_ words: String...) async throws -> CommandScene.Run {
            let executable = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
                .appendingPathComponent("larder-server").path
            let process = try CommandProcess(executable, words + ["--server", backend.url], environment: [:])
            await process.ended()
            return process.run
        }
        let shown = try await run("clients")
        #expect(shown.code == 0 && shown.output.contains("id: \(id)\n"), "\(shown)")
        #expect(shown.output.contains("key: post?id=post_1\n") && shown.output.contains("account: ana\n"), "\(shown)")
        let stale = try await run("clients", "\(id)", "invalidate", "post?id=post_1")
        #expect(stale.code == 0 && client.cache.stored(resource)?.freshness == .stale(.invalidated), "\(stale)")
        #expect(try await run("clients", "\(id)", "offline").code == 0)
        #expect(client.network?.isOffline == true)
        try client.write(.put, "/v1/posts/post_1/like", changing: Post.self, "post_1") { $0.likedByMe = true }
        let operation = try #require(client.cache.outbox.entries.first)
        #expect(try await run("clients", "\(id)", "drop", "\(operation.id)").code == 0)
        #expect(client.cache.outbox.entries.isEmpty)
        let typo = try await run("clients", "\(id)", "refersh", "x")
        #expect(typo.code == 2 && typo.errors.contains("did you mean 'refresh'?"), "\(typo)")
        client.close()
        await backend.stop()
    }

    @Test func `a wrong action is told, by the server or by the client`() async throws {
        let backend = try MockBackend.startSmall()
        let client = try await client(backend)
        let unknown = try await act(backend, "invalidate", #"{"key": "nothing"}"#)
        #expect(unknown.0 == 409 && unknown.1?.contains("\"nothing\"") == true)
        #expect(try await act(backend, "refresh").0 == 422)
        let wrong = try await act(backend, "explode")
        #expect(wrong.0 == 404 && wrong.1?.contains("invalidate") == true)
        client.close()
        await backend.stop()
    }

    @Test func `a client without an inspector does not connect`() async throws {
        let backend = try MockBackend.startSmall()
        let client = try await client(backend) { $0.inspector = nil }
        _ = try await client.cache.value(post(client))
        #expect(try await clients(backend).isEmpty)
        client.close()
        #expect(await backend.activity() == [])
        await backend.stop()
    }
}
