import Larder
import LarderCoding
import LarderDemo
import LarderModels

/// `larder profile`: shows a profile, and edits the user's own.
struct ProfileCommand {
    let context: CommandContext
    private var client: LarderClient { context.client }

    func run(_ who: String?, _ edits: [Arguments.ProfileEdit]) async throws {
        let id = try await identifier(who)
        if !edits.isEmpty { try await edit(id, edits) }
        let reading = try await context.read(client.profiles.resource(id), called: "\(who ?? context.user)'s profile")
        guard let profile = reading.snapshot.value else { return }
        if context.terminal.isJSON {
            return context.terminal.json(try reading.snapshot.json(withItem: profile))
        }
        for line in Self.lines(profile, context.terminal) { context.terminal.line(line) }
        context.terminal.line(context.footer(reading))
    }

    private static func lines(_ profile: Profile, _ terminal: Terminal) -> [String] {
        let name = terminal.paint(profile.displayName, .bold)
        let handle = terminal.paint("@" + profile.handle, .cyan)
        let rest = [profile.bio, profile.location].filter { !$0.isEmpty }.map { "  " + $0 }
        return ["\(name)  \(handle)  \(terminal.paint(profile.id, .dim))"] + rest
    }

    private func edit(_ id: String, _ edits: [Arguments.ProfileEdit]) async throws {
        guard context.connection.isOpen else {
            throw Failure(
                "An edit requires the server. Nothing was changed; try again when the server answers."
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
            guard let conflict = error.cause as? Outbox.EditConflict<Profile> else { throw error }
            let merge = try conflict.merged(preferringMine: false)
            guard merge.conflicts.isEmpty else {
                throw Failure(
                    "Another client has changed \(merge.conflicts.sorted().joined(separator: ", ")) in the meantime. Nothing was "
                        + "changed; run 'larder profile --refresh' and edit again."
                )
            }
            // The edits do not overlap.
            _ = try await client.profiles.save(
                base: conflict.theirs,
                mine: merge.value,
                ifMatch: conflict.validator
            )
            context.terminal.note("another client has changed other fields in the meantime; both edits are saved")
        }
        if !context.terminal.isJSON { context.terminal.line(context.terminal.paint("✓ saved", .green)) }
    }

    /// The user ID of an argument: an ID, a handle, or nil for the own profile.
    private func identifier(_ who: String?) async throws -> String {
        guard let who else {
            guard let own = client.session.userID else {
                if case .unreachable(let error) = context.connection { throw error }
                throw Failure("No user is signed in. Run 'larder login --user NAME' when the server answers.")
            }
            return own
        }
        return try await context.personID(who)
    }
}
