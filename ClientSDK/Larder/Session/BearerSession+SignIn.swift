import LarderEvents
import LarderHTTP
public import LarderResources
import LarderStorage
import LarderTime
import LarderTransport
import Synchronization

/// Sign-in and sign-out.
extension BearerSession {
    /// Signs in: stores the granted tokens, uses them from then on, and lets the cache send what has waited for a session.
    ///
    /// Stored values stay as they are, also those that were read without a session: see the `account` of `APIClient.init`.
    ///
    /// - Parameter request: sends the credentials, without authorization.
    /// - Throws: the error of the request; `.invalidArgument` if another user is signed in or has an expired session, whose content and
    ///   unsent changes the account has: sign out first (`APIClient.signOut`), or open a client with another account name. This process's
    ///   session decides: a sign-in in another process since then is not noticed. `.storage`,
    ///   `.encoding` or `.closed` if the tokens could not be stored.
    public func signIn(_ request: (HTTPSource) async throws(LarderError) -> Grant) async throws(LarderError) {
        let asked = clock.now
        let reason = RequestReason("session", cause: "a sign-in", isUserInitiated: true)
        let grant = try await reason.around { () async throws(LarderError) in try await request(source) }
        do { try requireSameUser(grant.userID) } catch {
            await revoke(grant.accessToken)
            throw error
        }
        try await keep(Self.tokens(grant, asked))
        cache.networkReturned()
    }

    /// Uses a token that cannot be renewed, such as a personal access token, as after `signIn`, whose errors it has.
    public func use(token: String, userID: String) async throws(LarderError) {
        try requireSameUser(userID)
        try await keep(Tokens(access: token, refresh: "", userID: userID, expiresAt: .max))
        cache.networkReturned()
    }

    /// Deletes the tokens from memory and from their place, and then revokes them at the server if it can be reached. Stored values and
    /// unsent changes stay, and any user can sign in afterwards: `APIClient.signOut` erases them too.
    ///
    /// A failed revocation is reported as `CacheEvent.failed` and ends nothing: the tokens expire on the server. A failed deletion is
    /// reported as `CacheEvent.storageFailed`. It is carried out also if the calling task is cancelled.
    public func signOut() async {
        if let token = await forget() { await revoke(token) }
    }

    /// Deletes the tokens from memory and from their place, and returns the access token, which is still valid at the server.
    func forget() async -> String? {
        let token = current.withLock { current in
            let token = current.tokens?.access
            current.tokens = nil
            current.unstored = nil
            return token
        }
        announce()
        // In a task of its own, so that a cancelled caller does not leave the tokens behind.
        await Task { await deleteStored() }.value
        return token
    }

    /// Tokens that are not revoked expire on the server.
    func revoke(_ token: String) async {
        let reason = RequestReason("session", cause: "a sign-out", isUserInitiated: true)
        do throws(LarderError) {
            try await reason.around { () async throws(LarderError) in
                if mayUseNetwork() { try await endpoints.revoke(source, token) }
            }
        } catch {
            cache.configuration.onEvent(.failed(resource: Self.key, error))
        }
    }

    /// The stored content and the unsent changes of an account belong to one user.
    private func requireSameUser(_ userID: String) throws(LarderError) {
        guard let known = self.userID, known != userID else { return }
        throw LarderError(
            .invalidArgument,
            "The account has the content of user \"\(known)\", so that \"\(userID)\" cannot sign in to it. Sign out first "
                + "(APIClient.signOut), or open a client with another account name."
        )
    }

    func mayUseNetwork() -> Bool { cache.configuration.mayUseNetwork() }

    static func tokens(_ grant: Grant, _ asked: WallTime) -> Tokens {
        Tokens(
            access: grant.accessToken,
            refresh: grant.refreshToken,
            userID: grant.userID,
            expiresAt: (asked + grant.lifetime).nanosecondsSinceEpoch
        )
    }
}
