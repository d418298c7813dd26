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
    /// - Throws: the error of the request; `.invalidArgument` if another user has signed in to the account before, in any process, because
    ///   the account has the content and the unsent changes of that user: sign out first (`APIClient.signOut`), or open a client with
    ///   another account name. The new tokens are then revoked. `.storage`, `.encoding` or `.closed` if the tokens could not be stored;
    ///   the account may belong to the new user all the same.
    public func signIn(_ request: (HTTPSource) async throws(LarderError) -> Grant) async throws(LarderError) {
        let asked = clock.now
        let reason = RequestReason("session", cause: "a sign-in", isUserInitiated: true)
        let grant = try await reason.around { () async throws(LarderError) in try await request(source) }
        do throws(LarderError) {
            guard let userID = grant.userID else {
                throw LarderError(
                    .invalidArgument,
                    "The grant of a sign-in has no userID. Set it to who has signed in."
                )
            }
            try await keep(Self.tokens(grant, userID, grant.refreshToken ?? "", asked))
        } catch {
            if error.code == .invalidArgument || error.code == .closed { await revoke(grant.accessToken) }
            throw error
        }
        await cache.core.reading { cache.networkReturned() }
    }

    /// Uses a token that cannot be renewed, such as a personal access token, as after `signIn`, whose errors it has.
    public func use(token: String, userID: String) async throws(LarderError) {
        try await keep(Tokens(access: token, refresh: "", userID: userID, expiresAt: .max))
        await cache.core.reading { cache.networkReturned() }
    }

    /// Deletes the tokens from memory and from their place, removes the cookies, and then revokes the tokens at the server if it can be
    /// reached. Stored values and unsent changes stay, so that only the same user can sign in afterwards: `APIClient.signOut` erases them too. The
    /// changes wait for that sign-in.
    ///
    /// It concerns this process: another one with the account keeps its tokens until the server rejects them, and stores them again if it
    /// renews them before. `APIClient.signOut` ends those too, because it erases the account's directory.
    ///
    /// A failed revocation is reported as `CacheEvent.failed` and ends nothing: the tokens expire on the server. A failed deletion is
    /// reported as `CacheEvent.storageFailed`. It is carried out also if the calling task is cancelled.
    public func signOut() async {
        if let token = await forget().token { await revoke(token) }
    }

    /// Deletes the tokens from memory and from their place, and removes the cookies.
    ///
    /// - Parameter isFinal: whether no later sign-in is stored, because the account's content is erased.
    /// - Returns: the access token, which is still valid at the server, and the error if the tokens are still in their place.
    func forget(isFinal: Bool = false) async -> (token: String?, failure: LarderError?) {
        let token = current.withLock { current in
            let token = (current.unstored?.tokens ?? current.tokens)?.access
            current.hasEnded = current.hasEnded || isFinal
            current.tokens = nil
            current.unstored = nil
            return token
        }
        cookies?.removeAll()
        announce()
        // In a task of its own, so that a cancelled caller does not leave the tokens behind.
        return (token, await Task { await deleteStored() }.value)
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

    func mayUseNetwork() -> Bool { cache.configuration.mayUseNetwork() }

    static func tokens(_ grant: Grant, _ userID: String, _ refresh: String, _ asked: WallTime) -> Tokens {
        Tokens(
            access: grant.accessToken,
            refresh: refresh,
            userID: userID,
            expiresAt: (asked + grant.lifetime).nanosecondsSinceEpoch
        )
    }
}
