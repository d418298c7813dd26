import Larder
import LarderDemo
import LarderModels

extension CommandContext {
    /// The user ID of a person who is named by an ID or a handle, with or without `@`.
    func personID(_ who: String) async throws -> String {
        if Self.isUserID(who) { return who }
        let handle = who.hasPrefix("@") ? String(who.dropFirst()) : who
        if handle == user, let own = client.session.userID { return own }
        var names = NameTable()
        // A stored profile needs no request.
        await names.loadAll(in: self)
        if let known = names.person(handle) { return known.id }
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
