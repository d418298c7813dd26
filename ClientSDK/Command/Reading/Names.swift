import Larder
import LarderModels

/// Who is behind the identifiers: as far as it is known here, or one request tells.
struct Names: Sendable {
    private var people: [String: Profile] = [:]

    /// `@ana`; the identifier of who is not known.
    func handle(_ id: String) -> String { people[id].map { "@" + TextWidth.clean($0.handle) } ?? TextWidth.clean(id) }

    /// `Ana Lind`; nil for who is not known.
    func displayName(_ id: String) -> String? { people[id].map { TextWidth.clean($0.displayName) } }

    /// Who has a handle, with or without `@`.
    func person(_ handle: String) -> Profile? {
        let handle = handle.hasPrefix("@") ? String(handle.dropFirst()) : handle
        return people.values.first { $0.handle == handle }
    }

    /// Learns who those are of whom nothing is known yet.
    mutating func learn(_ ids: some Sequence<String>, in kitchen: Kitchen) async {
        let missing = Set(ids).filter { people[$0] == nil }
        guard !missing.isEmpty else { return }
        if people.isEmpty { await learnEverybody(in: kitchen) }
        let unknown = missing.filter { people[$0] == nil }
        let client = kitchen.client
        let found = await withTaskGroup(of: Profile?.self) { group in
            for id in unknown {
                group.addTask { await kitchen.glance(client.profiles.resource(id)) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        for case let person? in found { people[person.id] = person }
    }

    /// Learns who there is, as far as one request tells.
    mutating func learnEverybody(in kitchen: Kitchen) async {
        guard let all = await kitchen.glance(Self.everybody(kitchen.client)) else { return }
        for person in all.items { people[person.id] = person }
    }

    /// The first hundred people, in one request that is good for a day: names seldom change.
    private static func everybody(_ client: LarderClient) -> Resource<EntityList<Profile>> {
        let source = client.source
        return .list("people", of: Profile.self, freshness: .reference, policy: .cacheFirst) { context in
            let page: Fetched<Page<Profile>> = try await source.fetch(
                "/v1/profiles",
                [("limit", "100")],
                context: context
            )
            guard let people = page.value else { return .notModified() }
            return .value(EntityList(people.items, nextCursor: people.nextCursor), validator: page.validator)
        }
    }
}
