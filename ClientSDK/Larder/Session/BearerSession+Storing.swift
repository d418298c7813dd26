import Foundation
import LarderEvents
import LarderHTTP
import LarderResources
import LarderStorage
import LarderTime
import LarderTransport
import Synchronization

/// The tokens in their place, which several processes may share.
extension BearerSession {
    /// Stores tokens and uses them from then on.
    ///
    /// - Parameter old: the tokens to be replaced; if other tokens are in use or stored, nothing happens. Nil: replaces any.
    /// - Returns: whether the new tokens are in use.
    /// - Throws: `.invalidArgument` if `old` is nil and the account belongs to another user; `.storage`, `.encoding`, `.closed`,
    ///   `.cancelled`. Then the tokens have not changed.
    @discardableResult
    func keep(_ tokens: Tokens, inPlaceOf old: Tokens? = nil) async throws(LarderError) -> Bool {
        let bytes: [UInt8]
        do { bytes = Array(try JSONEncoder().encode(tokens)) } catch {
            throw LarderError(.encoding, "The tokens of the session could not be encoded: \(error)", cause: error)
        }
        let isUsed = try await storing.run { () async throws(LarderError) in
            guard try await store(bytes, of: tokens.userID, inPlaceOf: old) else { return false }
            return try current.withLock { current throws(LarderError) in
                // A sign-out must not be undone: it deletes what was stored after this.
                guard !current.hasEnded else { throw Self.closed }
                guard old == nil || current.tokens == old else { return false }
                current.tokens = tokens
                current.unstored = nil
                return true
            }
        }
        if isUsed { announce() }
        return isUsed
    }

    static var closed: LarderError { LarderError(.closed, "The cache was closed or erased.") }

    /// Stores tokens; false if other tokens were stored first.
    private func store(_ bytes: [UInt8], of userID: String, inPlaceOf old: Tokens?) async throws(LarderError) -> Bool {
        guard !cache.isClosed else { throw Self.closed }
        try await acquire(storingLock) { false }
        defer { storingLock?.release() }
        if old == nil {
            try await cache.core.changing { () async throws(LarderError) in try claim(for: userID) }
        }
        guard let secrets else { return true }
        if let old {
            // A rebuilt place contains no tokens.
            if let stored = try await Self.stored(in: secrets, reportedTo: cache), stored != old { return false }
            guard current.withLock({ $0.tokens == old }) else { return false }
        }
        // Another process has signed out, which has erased the account.
        guard !(cache.outboxDisk?.isReplaced ?? false) else { throw Self.closed }
        try await secrets.save(bytes, as: Self.secretName)
        return true
    }

    /// Makes a user the owner of the account's content and unsent changes. They have one owner until they are erased, whatever becomes of
    /// the tokens, because a later user would see the content and send the changes.
    ///
    /// Call it while holding `storingLock`. The owner is stored before the tokens: without them, the same user can sign in again.
    ///
    /// - Throws: `.invalidArgument` if they belong to another user; `.storage`, also if it cannot be read to whom.
    private func claim(for userID: String) throws(LarderError) {
        guard let owner = try owner() else { return try setOwner(userID) }
        guard case .user(let name) = owner else {
            throw LarderError(
                .storage,
                "The owner of the account cannot be read: nobody can sign in. Give the key back with which it was stored, or erase the "
                    + "account (APIClient.signOut)."
            )
        }
        guard name != userID else { return }
        throw LarderError(
            .invalidArgument,
            "The account has the content of user \"\(name)\", so that \"\(userID)\" cannot sign in to it. Sign out first "
                + "(APIClient.signOut), or open a client with another account name."
        )
    }

    /// To whom the account's content and its unsent changes belong.
    enum Owner {
        case user(String)
        /// Somebody has signed in; who it was is damaged or needs another key, as do changes that wait.
        case unreadable
    }

    /// To whom the account's content belongs; nil if nobody has signed in.
    func owner() throws(LarderError) -> Owner? {
        do {
            if let stored = try cache.outboxDisk?.metadata(Self.ownerKey) {
                return .user(String(decoding: stored, as: UTF8.self))
            }
            if let known = current.withLock({ $0.owner }) { return .user(known) }
            return try cache.outboxDisk?.isUnreadable(Self.ownerKey) ?? false ? .unreadable : nil
        } catch {
            throw LarderError(error)
        }
    }

    private func setOwner(_ userID: String) throws(LarderError) {
        do {
            try cache.outboxDisk?.write(.powerLoss) { transaction in
                try transaction.setMetadata(Array(userID.utf8), for: Self.ownerKey)
            }
        } catch {
            throw LarderError(error)
        }
        current.withLock { $0.owner = userID }
    }

    /// Stores whose tokens there are, if the store has lost it. A failure is reported.
    func restoreOwner() async {
        do throws(LarderError) {
            try await cache.core.changing { () async throws(LarderError) in
                guard let userID, let disk = cache.outboxDisk else { return }
                let stored: [UInt8]?
                do { stored = try disk.metadata(Self.ownerKey) } catch { throw LarderError(error) }
                if stored == nil { try setOwner(userID) }
            }
        } catch {
            cache.configuration.onEvent(.storageFailed(error))
        }
    }

    /// Uses the tokens that another process has stored in place of `tokens`.
    ///
    /// - Returns: false if no other tokens are stored.
    /// - Throws: `.closed` if they are those of another user: the account was signed out, and its content with it. `.storage`.
    func adoptStored(inPlaceOf tokens: Tokens) async throws(LarderError) -> Bool {
        guard let stored = try await Self.stored(in: secrets, reportedTo: cache), stored != tokens else { return false }
        guard stored.userID == tokens.userID else { throw Self.closed }
        let isUsed = current.withLock { current in
            guard current.tokens == tokens else { return false }
            current.tokens = stored
            current.unstored = nil
            return true
        }
        if isUsed { announce() }
        return true
    }

    /// Uses the tokens of a sign-in by another process if this session has expired.
    func adoptSignIn() async {
        guard let tokens = current.withLock({ $0.tokens }), tokens.isExpired else { return }
        do throws(LarderError) { _ = try await adoptStored(inPlaceOf: tokens) } catch {
            // The next call and the next request read the tokens again.
        }
    }

    /// Deletes the tokens from their place.
    ///
    /// - Returns: the error of the place, which is also reported.
    func deleteStored() async -> LarderError? {
        do throws(LarderError) {
            // After a change that is being stored. A sign-in since then has put its tokens in place.
            try await storing.run { () async throws(LarderError) in
                guard current.withLock({ $0.tokens == nil }) else { return }
                // Those of the next user of the account stay.
                guard !(cache.outboxDisk?.isReplaced ?? false) else { return }
                try await secrets?.delete(Self.secretName)
            }
            return nil
        } catch {
            cache.configuration.onEvent(.storageFailed(error))
            return error
        }
    }

    /// Waits for a lock that another process may hold.
    ///
    /// - Parameter isDone: whether the lock is not needed any more.
    /// - Returns: whether the lock is held.
    @discardableResult
    func acquire(
        _ lock: FileProcessLock?,
        unless isDone: () async throws(LarderError) -> Bool
    ) async throws(LarderError) -> Bool {
        guard let lock else { return true }
        let configuration = cache.configuration
        let end = configuration.monotonicClock.uptime + Self.lockWaitMaximum
        var attempts = 0
        while true {
            do { if try lock.take() { return true } } catch { throw LarderError(error) }
            if try await isDone() { return false }
            let now = configuration.monotonicClock.uptime
            guard now < end else {
                let text = "Another process has been renewing the session for \(Self.lockWaitMaximum). Try again later."
                throw LarderError(TransportError(.unreachable, text))
            }
            attempts += 1
            let pause = Self.lockRetry.backoffMaximum(attempt: attempts)
            do { try await configuration.monotonicClock.sleep(until: now + pause) } catch { throw LarderError(error) }
        }
    }
}
