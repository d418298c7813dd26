import Larder
import LarderCoding
import LarderModels

/// `larder profile`: a person, and the change of one's own.
struct ProfileCommand {
    let kitchen: Kitchen
    private var client: LarderClient { kitchen.client }

    init(_ kitchen: Kitchen) { self.kitchen = kitchen }

    func run(_ who: String?, _ edits: [Arguments.ProfileEdit]) async throws {
        let id = try await identifier(who)
        if !edits.isEmpty { try await edit(id, edits) }
        let reading = try await kitchen.read(client.profiles.resource(id), called: "\(who ?? kitchen.user)'s profile")
        guard let profile = reading.snapshot.value else { return }
        if kitchen.terminal.isJSON {
            return kitchen.terminal.json(
                .members([("badge", Badge(reading.snapshot).json), ("item", try JSONValue(encoding: profile))])
            )
        }
        for line in Self.lines(profile, kitchen.terminal) { kitchen.terminal.line(line) }
        kitchen.terminal.line(kitchen.footer(reading))
    }

    private static func lines(_ profile: Profile, _ terminal: Terminal) -> [String] {
        let name = terminal.paint(TextWidth.clean(profile.displayName), .bold)
        let handle = terminal.paint("@" + TextWidth.clean(profile.handle), .cyan)
        let rest = [profile.bio, profile.location].filter { !$0.isEmpty }.map { "  " + TextWidth.clean($0) }
        return ["\(name)  \(handle)  \(terminal.paint(TextWidth.clean(profile.id), .dim))"] + rest
    }

    private func edit(_ id: String, _ edits: [Arguments.ProfileEdit]) async throws {
        guard kitchen.connection.isOpen else {
            throw Failure(
                "A profile is edited with the server's word for it. Nothing was changed; try again when it answers."
            )
        }
        let change: @Sendable (inout Profile) -> Void = { profile in
            for edit in edits {
                switch edit.field {
                case .displayName: profile.displayName = edit.value
                case .bio: profile.bio = edit.value
                case .location: profile.location = edit.value
                }
            }
        }
        do {
            try await client.profiles.edit(id, change)
        } catch {
            guard let conflict = error.cause as? EditConflict<Profile> else { throw error }
            let merge = try conflict.merged(preferring: .theirs)
            guard merge.conflicts.isEmpty else {
                throw Failure(
                    "Somebody else has changed \(merge.conflicts.sorted().joined(separator: ", ")) meanwhile. Nothing was "
                        + "changed; look at it with larder profile --refresh, and edit again."
                )
            }
            // Both changes go together: each field was changed by one side only.
            _ = try await client.profiles.save(
                base: conflict.theirs,
                mine: merge.value,
                ifMatch: conflict.validator
            )
            kitchen.terminal.note("somebody else had changed other fields meanwhile; both changes are in")
        }
        if !kitchen.terminal.isJSON { kitchen.terminal.line(kitchen.terminal.paint("✓ saved", .green)) }
    }

    /// An identifier, or whose handle it is.
    private func identifier(_ who: String?) async throws -> String {
        guard let who else {
            guard let own = client.session.userID else {
                if case .unreachable(let error) = kitchen.connection { throw error }
                throw Failure("Nobody is signed in here. larder login --user NAME signs in when the server answers.")
            }
            return own
        }
        if Self.isIdentifier(who) { return who }
        let handle = who.hasPrefix("@") ? String(who.dropFirst()) : who
        if handle == kitchen.user, let own = client.session.userID { return own }
        var names = Names()
        // Whoever is known here already costs no request.
        await names.learnEverybody(in: kitchen)
        if let known = names.person(handle) { return known.id }
        guard kitchen.connection.isOpen else {
            let server = kitchen.arguments.server
            throw Failure("Nobody called \(handle) is stored here. Ask \(server) once, without --offline.")
        }
        let found: Fetched<Page<Profile>> = try await client.source.fetch(
            "/v1/profiles",
            [("handle", handle)],
            context: FetchContext()
        )
        guard let person = found.value?.items.first else {
            throw Failure("There is nobody called \(handle) on \(kitchen.arguments.server).")
        }
        return person.id
    }

    private static func isIdentifier(_ text: String) -> Bool {
        let parts = text.split(separator: "_", omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0] == "user" && !parts[1].isEmpty && parts[1].allSatisfy(\.isNumber)
    }
}
