import LarderHTTP
public import LarderModels

/// People: through memory, disk and network, fresh for five minutes; edited with the server's word for it.
public struct Profiles: Sendable {
    private let cache: LarderCache
    private let source: HTTPSource

    init(_ cache: LarderCache, _ source: HTTPSource) {
        self.cache = cache
        self.source = source
    }

    /// A person as a resource: observe it, read it, refresh it by `LarderClient.cache`.
    public func resource(_ id: String) -> Resource<Profile> {
        let source = source
        return .entity(id, freshness: .timeToLive(.seconds(300), as: .interactive)) { context in
            try await source.fetch("/v1/profiles/\(HTTPSource.escape(id))", context: context)
        }
    }

    /// A person.
    public func profile(_ id: String, _ policy: ReadPolicy? = nil) async throws(LarderError) -> Snapshot<Profile> {
        try await cache.snapshot(resource(id), policy)
    }

    /// A person, and what becomes of them.
    public func snapshots(_ id: String, _ policy: ReadPolicy? = nil) -> Snapshots<Profile> {
        cache.snapshots(resource(id), policy)
    }

    /// Changes the profile of who is signed in, if nobody else has meanwhile: awaited, and never shown before.
    ///
    /// Where the reply is lost or decides nothing (a 5xx), the profile is read again: if it has the change, the change was saved.
    ///
    /// - Throws: `.conflict` with an `EditConflict<Profile>` as its cause where somebody else has changed it; `.offline` where it was
    ///   not sent, and then nothing has changed; `.inDoubt` where it may have been saved, or may still be; `.refused` where it was not.
    @discardableResult
    public func edit(_ id: String, _ change: @Sendable (inout Profile) -> Void) async throws(LarderError) -> Profile {
        let known = try await cache.snapshot(resource(id), .cacheFirst)
        // What came with a list has no ETag of its own.
        let snapshot = known.validator == nil ? try await cache.refresh(resource(id)) : known
        guard let base = snapshot.value, let validator = snapshot.validator else {
            throw LarderError(
                .unexpectedReply,
                "The server gives no ETag with the profile, so it cannot be edited safely."
            )
        }
        var mine = base
        change(&mine)
        return try await save(base: base, mine: mine, ifMatch: validator)
    }

    /// Saves a profile in place of the one that it was made from.
    ///
    /// - Parameter validator: the ETag that came with `base`.
    /// - Throws: as `edit`.
    public func save(base: Profile, mine: Profile, ifMatch validator: String) async throws(LarderError) -> Profile {
        let patch = ProfilePatch(base: base, mine: mine)
        guard !patch.isEmpty else { return base }
        do {
            let reply = try await source.send(
                .patch,
                "/v1/me",
                patch,
                [.ifMatch: validator, .contentType: "application/merge-patch+json"],
                as: Profile.self
            )
            // It is saved, whatever becomes of it here.
            cache.updateIfPossible { $0.put(reply.value, validator: reply.fields[.etag]) }
            return reply.value
        } catch {
            switch error.code {
            case .conflict:
                let theirs = try await current(base.id)
                throw LarderError(
                    .conflict,
                    "The profile was changed elsewhere meanwhile. Merge both, and save again.",
                    cause: EditConflict(base: base, mine: mine, theirs: theirs.value, validator: theirs.validator),
                    status: 412
                )
            // A reply that says neither yes nor no is as good as lost.
            case .offline, .timedOut, .unexpectedReply, .refused:
                guard OperationVerdict(error) == .unknown else { throw error }
                return try await resolve(base, mine, error)
            default: throw error
            }
        }
    }

    /// The reply was lost: what is there now tells whether the profile was saved. Where it was not, it may still be: the request may be
    /// on its way.
    private func resolve(_ base: Profile, _ mine: Profile, _ error: LarderError) async throws(LarderError) -> Profile {
        let text = "It is not known whether the profile was saved. Read it again when there is a network."
        let now: Profile
        do { now = try await current(base.id).value } catch {
            throw LarderError(.inDoubt, "\(text) (\(error.description))", cause: error)
        }
        if ProfilePatch(base: now, mine: mine).isEmpty { return now }
        throw LarderError(
            .inDoubt,
            "\(text) (\(error.description))",
            cause: error,
            status: error.status,
            problem: error.problem
        )
    }

    private func current(_ id: String) async throws(LarderError) -> (value: Profile, validator: String) {
        let snapshot = try await cache.refresh(resource(id))
        guard let value = snapshot.value, let validator = snapshot.validator else {
            throw LarderError(.unexpectedReply, "The server gives no ETag with the profile.")
        }
        return (value, validator)
    }
}

/// What a merge patch changes of a profile (RFC 7396).
private struct ProfilePatch: Encodable, Sendable {
    var displayName: String?
    var bio: String?
    var location: String?

    init(base: Profile, mine: Profile) {
        displayName = base.displayName == mine.displayName ? nil : mine.displayName
        bio = base.bio == mine.bio ? nil : mine.bio
        location = base.location == mine.location ? nil : mine.location
    }

    var isEmpty: Bool { displayName == nil && bio == nil && location == nil }
}
