import Foundation
import Larder
import LarderHTTP
import LarderResources
import LarderTesting
import LarderTransport
import SDKTestSupport

/// Clients of a scripted backend in a temporary directory, with a manual clock.
final class ClientFixture: Sendable {
    let scene = CacheScene()

    /// A client. A second one is the app after a restart.
    func client(
        _ transport: any Transport,
        _ change: (inout APIClient.Configuration) -> Void = { _ in }
    ) async throws -> APIClient {
        var configuration = APIClient.Configuration(transport: transport)
        configuration.cache = scene.configuration(inMemory: true)
        configuration.services = .none
        configuration.session = BearerSession.Endpoints(
            renew: { source, token throws(LarderError) in
                let reply: HTTPSource.Reply<[String: String]> = try await source.send(
                    .post,
                    "/token",
                    ["refresh": token]
                )
                return Self.grant(reply.value["access"] ?? "")
            },
            endsSession: { $0.status == 400 }
        )
        change(&configuration)
        return try await APIClient(server: "http://server", account: "ana", directory: scene.path, configuration)
    }

    /// The account's directory.
    var directory: String { DiskStore.directory(forAccount: "ana", in: scene.path) }

    static func grant(_ token: String, user: String = "ana") -> BearerSession.Grant {
        BearerSession.Grant(accessToken: token, refreshToken: "again", userID: user, lifetime: .seconds(600))
    }

    static func json(_ text: String, status: Status = .ok, _ fields: Fields = Fields()) -> ScriptedTransport.Reply {
        var fields = fields
        fields.set(.contentType, "application/json")
        return .text(text, status: status, fields: fields)
    }
}
