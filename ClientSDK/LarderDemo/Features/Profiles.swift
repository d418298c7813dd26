public import Larder
public import LarderModels

/// User profiles: fresh for five minutes unless a newer version is known; edits are write-through with optimistic concurrency (`If-Match`).
public struct Profiles: Sendable {
    private let client: APIClient

    init(_ client: APIClient) { self.client = client }

    private static let freshness = Freshness.Demand.rule(
        Freshness.Rule(.all([.timeToLive(.seconds(300)), .version]), stretchClass: .interactive)
    )

    /// Notes that the server has a version of a profile, of which a push notification told: an older stored one is stale from now on.
    func noteVersion(_ version: Int64, of id: String) async {
        await client.cache.noteVersion(version, of: Profile.self, id)
    }

    /// The resource of a profile, to be read and observed through `LarderClient.cache`.
    public func resource(_ id: String) -> Resource<Profile> {
        let source = client.source
        var profile = Resource<Profile>.entity(id, freshness: Self.freshness) { context in
            try await source.fetch("/v1/profiles/\(HTTPSource.escape(id))", context: context)
        }
        profile.isCached = client.isCached("profiles")
        return profile
    }

    public func profile(_ id: String, _ policy: ReadPolicy? = nil) async throws(LarderError) -> Snapshot<Profile> {
        try await client.cache.snapshot(resource(id), policy)
    }

    /// Observes a profile.
    public func snapshots(_ id: String, _ policy: ReadPolicy? = nil) -> some AsyncSequence<Snapshot<Profile>, Never>
        & Sendable
    {
        client.cache.snapshots(resource(id), policy)
    }

    /// Edits the profile of the signed-in user, and returns after the server has saved it.
    ///
    /// If the reply is lost or inconclusive (5xx), the profile is read again to find out whether the edit was saved.
    ///
    /// - Throws: `.conflict` with an `Outbox.EditConflict<Profile>` as its cause if another client has edited it; `.offline` if nothing was sent;
    ///   `.inDoubt` if the outcome is unknown; `.rejected` if the server has rejected it.
    @discardableResult
    public func edit(_ id: String, _ change: @Sendable (inout Profile) -> Void) async throws(LarderError) -> Profile {
        let known = try await client.cache.snapshot(resource(id), .cacheFirst)
        // A profile that came with a list has no ETag.
        let snapshot = known.validator == nil ? try await client.cache.refresh(resource(id)) : known
        guard let base = snapshot.value, let validator = snapshot.validator else {
            throw LarderError(
                .unexpectedReply,
                "The server sends no ETag with the profile, so it cannot be edited safely."
            )
        }
        var mine = base
        change(&mine)
        return try await save(base: base, mine: mine, ifMatch: validator)
    }

    /// Saves an edited profile.
    ///
    /// - Parameters:
    ///   - base: the profile as it was before the edit.
    ///   - mine: the profile with the edit.
    ///   - validator: the ETag that came with `base`; nil: it is saved whatever the server has.
    /// - Throws: as `edit`.
    public func save(base: Profile, mine: Profile, ifMatch validator: String?) async throws(LarderError) -> Profile {
        let patch = patch(from: base, to: mine)
        guard !patch.isEmpty else { return base }
        do {
            let reply = try await client.source.send(
                .patch,
                "/v1/me",
                patch,
                [.ifMatch: validator ?? "*", .contentType: "application/merge-patch+json"],
                as: Profile.self
            )
            // The server has saved it, even if it cannot be stored here.
            await client.cache.updateIfPossible { $0.put(reply.value, validator: reply.fields[.etag]) }
            return reply.value
        } catch {
            switch error.code {
            case .conflict:
                let theirs = try await current(base.id)
                throw LarderError(
                    .conflict,
                    "Another client has edited the profile. Merge both edits and save again.",
                    cause: Outbox.EditConflict(
                        base: base,
                        mine: mine,
                        theirs: theirs.value,
                        validator: theirs.validator
                    ),
                    status: 412
                )
            // An inconclusive reply counts as lost.
            case .offline, .timedOut, .unexpectedReply, .rejected:
                guard error.mayHaveBeenCarriedOut else { throw error }
                return try await resolve(base, mine, error)
            default: throw error
            }
        }
    }

    /// Reads the profile after a lost reply to find out whether it was saved. If it was not, the request may still be in flight.
    private func resolve(_ base: Profile, _ mine: Profile, _ error: LarderError) async throws(LarderError) -> Profile {
        let text = "It is not known whether the profile was saved. Read it again when the server answers."
        let now: Profile
        do { now = try await current(base.id).value } catch {
            throw LarderError(.inDoubt, "\(text) (\(error.description))", cause: error)
        }
        // Another client may have changed other fields since.
        let mineOnly = patch(from: base, to: mine)
        if patch(from: now, to: mine).keys.allSatisfy({ mineOnly[$0] == nil }) { return now }
        throw LarderError(
            .inDoubt,
            "\(text) (\(error.description))",
            cause: error,
            status: error.status,
            problem: error.problem
        )
    }

    private func current(_ id: String) async throws(LarderError) -> (value: Profile, validator: String) {
        let snapshot = try await client.cache.refresh(resource(id))
        guard let value = snapshot.value, let validator = snapshot.validator else {
            throw LarderError(.unexpectedReply, "The server sends no ETag with the profile.")
        }
        return (value, validator)
    }

    /// The merge patch of an edit (RFC 7396).
    private func patch(from base: Profile, to mine: Profile) -> [String: String] {
        var patch: [String: String] = [:]
        if base.displayName != mine.displayName { patch["displayName"] = mine.displayName }
        if base.bio != mine.bio { patch["bio"] = mine.bio }
        if base.location != mine.location { patch["location"] = mine.location }
        return patch
    }
}
