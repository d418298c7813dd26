import Larder
import LarderDemo
import LarderModels

extension [String: Profile] {
    /// `@ana`; the ID of an unknown user.
    func handle(_ id: String) -> String { self[id].map { "@" + $0.handle } ?? id }
}

extension CommandContext {
    /// The profiles of users by ID, without those that cannot be read. What was read before costs no request.
    func people(_ ids: [String]) async -> [String: Profile] {
        guard !ids.isEmpty else { return [:] }
        var people = Dictionary(await firstPeople().map { ($0.id, $0) }) { $1 }
        let missing = Set(ids).filter { people[$0] == nil }
        await withTaskGroup(of: Profile?.self) { group in
            for id in missing { group.addTask { await self.readQuietly(self.client.profiles.resource(id)) } }
            for await case let person? in group { people[person.id] = person }
        }
        return people
    }

    /// The first hundred profiles, fresh for a day.
    private func firstPeople() async -> [Profile] {
        let source = client.source
        let list = Resource<EntityList<Profile>>.list(
            "people",
            of: Profile.self,
            freshness: .reference,
            policy: .cacheFirst
        ) { context in
            try await source.page("/v1/profiles", PageRequest(context, limit: 100), by: .demo)
        }
        return await readQuietly(list)?.items ?? []
    }

    /// The user ID of a person who is named by an ID or a handle, with or without `@`.
    func personID(_ who: String) async throws -> String {
        if Self.isUserID(who) { return who }
        let handle = who.hasPrefix("@") ? String(who.dropFirst()) : who
        if handle == user, let own = client.session.userID { return own }
        // A stored profile needs no request.
        if let known = await firstPeople().first(where: { $0.handle == handle }) { return known.id }
        guard connection.isOpen else {
            throw Failure("No profile '\(handle)' is stored. Run once without --offline to ask \(arguments.server).")
        }
        let found: Fetched<Page<Profile>> = try await client.source.fetch(
            "/v1/profiles",
            [("handle", handle)],
            context: FetchContext()
        )
        guard let person = found.value?.items.first else {
            throw Failure("There is no profile '\(handle)' on \(arguments.server).")
        }
        return person.id
    }

    private static func isUserID(_ text: String) -> Bool {
        let parts = text.split(separator: "_", omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0] == "user" && !parts[1].isEmpty && parts[1].allSatisfy(\.isNumber)
    }
}
