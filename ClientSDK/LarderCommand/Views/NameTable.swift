import Larder
import LarderDemo
import LarderModels

/// The handles and names of users by ID.
struct NameTable: Sendable {
    private var people: [String: Profile] = [:]

    /// `@ana`; the ID of an unknown user.
    func handle(_ id: String) -> String { people[id].map { "@" + $0.handle } ?? id }

    /// `Ana Lind`; nil for an unknown user.
    func displayName(_ id: String) -> String? { people[id].map { $0.displayName } }

    /// The profile with a handle, with or without `@`.
    func person(_ handle: String) -> Profile? {
        let handle = handle.hasPrefix("@") ? String(handle.dropFirst()) : handle
        return people.values.first { $0.handle == handle }
    }

    /// Loads the profiles of unknown users.
    mutating func load(_ ids: some Sequence<String>, in context: CommandContext) async {
        let missing = Set(ids).filter { people[$0] == nil }
        guard !missing.isEmpty else { return }
        if people.isEmpty { await loadAll(in: context) }
        let unknown = missing.filter { people[$0] == nil }
        let client = context.client
        let found = await withTaskGroup(of: Profile?.self) { group in
            for id in unknown {
                group.addTask { await context.readQuietly(client.profiles.resource(id)) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        for case let person? in found { people[person.id] = person }
    }

    /// Loads the first page of all profiles.
    mutating func loadAll(in context: CommandContext) async {
        guard let all = await context.readQuietly(Self.allProfiles(context.client)) else { return }
        for person in all.items { people[person.id] = person }
    }

    /// The first hundred profiles, fresh for a day.
    private static func allProfiles(_ client: LarderClient) -> Resource<EntityList<Profile>> {
        let source = client.source
        return .list("people", of: Profile.self, freshness: .reference, policy: .cacheFirst) { context in
            try await source.page("/v1/profiles", PageRequest(context, limit: 100), by: .demo)
        }
    }
}

/// Keeps the names of a live view.
actor NameCache {
    private let context: CommandContext
    private var known = NameTable()

    init(_ context: CommandContext) { self.context = context }

    /// The names of these users and of all earlier ones.
    func names(_ ids: [String]) async -> NameTable {
        var names = known
        await names.load(ids, in: context)
        known = names
        return names
    }
}
