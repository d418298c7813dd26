import Foundation
import LarderResources
import LarderStorage

extension BearerSession {
    /// The name of the tokens in a `SecretStore`.
    static let secretName = "session"

    /// The tokens of a user as they are stored.
    struct Tokens: Codable, Sendable, Equatable {
        var access: String
        var refresh: String
        var userID: String
        var expiresAt: Int64
        var isExpired = false
    }

    /// The stored tokens. Bytes that cannot be decoded count as none: they are reported, and the user must sign in again.
    static func stored(
        in secrets: (any SecretStore)?,
        reportedTo cache: LarderCache
    ) async throws(LarderError) -> Tokens? {
        do throws(LarderError) {
            guard let bytes = try await secrets?.load(secretName) else { return nil }
            do { return try JSONDecoder().decode(Tokens.self, from: Data(bytes)) } catch {
                // Without the decoder's error, which may quote the bytes: they are secret.
                throw LarderError(.encoding, "The stored session cannot be decoded and is ignored. Sign in again.")
            }
        } catch {
            let isWrongKey = (error.cause as? DiskError)?.code == ErrorCode<DiskError>.transform
            guard isWrongKey || error.code == .encoding else { throw error }
            let report = LarderError(.storage, error.description, cause: error.cause)
            cache.configuration.onEvent(.storageFailed(report))
            return nil
        }
    }
}
