import LarderEvents
import LarderHTTP
import LarderResources
import LarderStorage
import LarderTime
import LarderTransport
import Synchronization

/// The renewal of the tokens: one at a time, also among processes.
extension BearerSession {
    /// - Parameter tokens: those that are to be renewed; if others are in use, nothing is done.
    func renewed(_ tokens: Tokens) async throws(LarderError) {
        let (flight, isNew) = current.withLock { current in
            if let running = current.renewal { return (SingleFlight<Void, Void, LarderError>?.some(running), false) }
            guard current.tokens == tokens else { return (nil, false) }
            // No holder leaves it, so it is not cancelled with the last waiter.
            let flight = SingleFlight<Void, Void, LarderError>(())
            current.renewal = flight
            return (flight, true)
        }
        guard let flight else { return }
        // What is lost of the renewal's own requests says nothing of the request that needs it.
        if isNew {
            LostCopies.$current.withValue(nil) {
                flight.run(Task { flight.finish(await self.carryOutRenewal()) })
            }
        }
        try await flight.wait()
    }

    private func carryOutRenewal() async -> Result<Void, LarderError> {
        defer { current.withLock { $0.renewal = nil } }
        do throws(LarderError) {
            guard let tokens = current.withLock({ $0.tokens }) else { return .success(()) }
            guard mayUseNetwork() else {
                // The request fails as offline and is retried when the network is back.
                let text = "The session cannot be renewed while the network may not be used."
                throw LarderError(TransportError(.unreachable, text))
            }
            guard try await acquireLock(tokens) else { return .success(()) }
            defer { renewalLock?.release() }
            // The process that held the lock before may have renewed the tokens.
            if try await adoptStored(inPlaceOf: tokens) { return .success(()) }
            // A sign-out, or a sign-in that is not stored yet.
            guard current.withLock({ $0.tokens == tokens }) else { return .success(()) }
            try await RequestReason("session", cause: "the access token must be renewed").around {
                () async throws(LarderError) in try await exchange(tokens)
            }
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// Waits until no other process renews the tokens.
    ///
    /// - Returns: false if another process has stored new tokens, which are now in use.
    /// - Throws: `.offline` if the other process does not finish in `lockWaitMaximum`; `.storage`.
    private func acquireLock(_ tokens: Tokens) async throws(LarderError) -> Bool {
        try await acquire(renewalLock) { () async throws(LarderError) in try await adoptStored(inPlaceOf: tokens) }
    }

    /// Exchanges the refresh token for new tokens, stores them and uses them.
    private func exchange(_ tokens: Tokens) async throws(LarderError) {
        let new: Tokens
        if let (unstored, old) = current.withLock({ $0.unstored }), old == tokens {
            // The server has granted these tokens before, but storing them had failed.
            new = unstored
        } else {
            do throws(LarderError) {
                new = try await grant(tokens)
            } catch {
                guard error.code == .unauthorized else { throw error }
                return try await end(tokens, error)
            }
        }
        do throws(LarderError) {
            if try await keep(new, inPlaceOf: tokens) { return }
            // A sign-in during the renewal wins.
            if current.withLock({ $0.tokens != nil }), try await adoptStored(inPlaceOf: tokens) { return }
        } catch {
            let isSignedIn = current.withLock { current in
                guard current.tokens == tokens else { return false }
                current.unstored = (new, tokens)
                return true
            }
            if !isSignedIn { await revoke(new.access) }
            throw error
        }
        // So does a sign-out, which did not know these tokens.
        await revoke(new.access)
    }

    /// Requests new tokens, and once more if the reply was lost: the server accepts the replaced refresh token for a grace period
    /// (RFC 9700 §4.14.2).
    ///
    /// - Throws: `.unauthorized` if `endsSession` says that the server has rejected the token.
    private func grant(_ tokens: Tokens) async throws(LarderError) -> Tokens {
        do throws(LarderError) { return try await askOnce(tokens) } catch {
            let isLost = (error.cause as? TransportError)?.code == .interrupted || error.isUnreadableAcceptance
            guard isLost, mayUseNetwork() else { throw error }
            return try await askOnce(tokens)
        }
    }

    private func askOnce(_ tokens: Tokens) async throws(LarderError) -> Tokens {
        let asked = clock.now
        do throws(LarderError) {
            let grant = try await endpoints.renew(source, tokens.refresh)
            return Self.tokens(grant, grant.userID ?? tokens.userID, grant.refreshToken ?? tokens.refresh, asked)
        } catch {
            guard endpoints.endsSession(error) else { throw error }
            throw LarderError(
                .unauthorized,
                "The session has ended. Sign in again.",
                cause: error,
                status: 401,
                problem: error.problem
            )
        }
    }

    /// Ends the session after a rejected refresh token, unless another process has stored newer tokens.
    private func end(_ tokens: Tokens, _ rejection: LarderError) async throws(LarderError) {
        if try await adoptStored(inPlaceOf: tokens) { return }
        var expired = tokens
        expired.isExpired = true
        // The tokens are not in use any more.
        guard try await keep(expired, inPlaceOf: tokens) else { return }
        throw rejection
    }
}
