import Foundation
import Larder

/// The token endpoint of the backend (RFC 6749).
struct TokenReply: Decodable, Sendable {
    var accessToken: String
    var refreshToken: String
    var expiresIn: Int

    var grant: BearerSession.Grant {
        BearerSession.Grant(
            accessToken: accessToken,
            refreshToken: refreshToken,
            userID: "ana",
            lifetime: .seconds(expiresIn)
        )
    }
}

extension BearerSession.Endpoints {
    /// Renews with a refresh grant. The backend answers a used refresh token with 400 `invalid_grant`, which ends the session; pending
    /// writes wait for the next sign-in.
    static let news = BearerSession.Endpoints(
        renew: { source, token throws(LarderError) in
            try await source.grant("grant_type=refresh_token&refresh_token=\(HTTPSource.escape(token))")
        },
        endsSession: { $0.status == 400 }
    )
}

extension HTTPSource {
    /// Posts a form to the token endpoint.
    func grant(_ form: String) async throws(LarderError) -> BearerSession.Grant {
        var request = TransportRequest(method: .post, url: url("/token"))
        request.fields.set(.contentType, "application/x-www-form-urlencoded")
        request.body = Array(form.utf8)
        let response = try await send(request)
        guard response.status == .ok else { throw error(for: response, request.url) }
        do { return try configuration.decoder.decode(TokenReply.self, from: Data(response.body)).grant } catch {
            throw LarderError(.unexpectedReply, "The reply of \(request.url) is not a grant.", cause: error)
        }
    }
}
