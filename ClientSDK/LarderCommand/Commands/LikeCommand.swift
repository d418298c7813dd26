import Larder
import LarderCoding
import LarderDemo
import LarderModels

/// `larder like` and `larder unlike`: shown at once, queued until the server has confirmed it.
struct LikeCommand {
    let context: CommandContext

    init(_ context: CommandContext) { self.context = context }

    func run(_ post: String, _ isLike: Bool) async throws {
        let id = try context.client.likes.set(isLike, post)
        guard let id else {
            await report(post, "nothing", "cancelled an unsent change; nothing is left to send", .green)
            return await context.finish()
        }
        await context.drain()
        await finish(post, id, isLike)
        await context.finish(own: [id])
        if case .rejected(let error)? = context.events.outcome(of: id) {
            throw Failure(
                "\(post): \(Failure.sentence(error.description)) The like was rolled back; 'larder outbox drop \(id)' removes it."
            )
        }
    }

    private func finish(_ post: String, _ id: OperationID, _ isLike: Bool) async {
        switch context.events.outcome(of: id) {
        case .accepted: await report(post, "sent", "sent", .green)
        case .rejected: break
        case .postponed(let error)? where error.code != .offline:
            await report(post, "queued", "queued for retry: \(Failure.sentence(error.description))", .yellow)
        default:
            let reason = context.isOffline ? "--offline" : "\(context.arguments.server) cannot be reached"
            await report(
                post,
                "queued",
                "queued (\(reason)); the next command that reaches the server sends it",
                .yellow
            )
        }
    }

    private func report(_ id: String, _ outcome: String, _ text: String, _ color: Terminal.Color) async {
        let terminal = context.terminal
        // The stored post with local changes.
        var post: Post?
        do {
            post = try await context.cache.value(context.client.feed.post(id), .cacheOnly)
        } catch {
            if error.code != .notCached, error.code != .gone {
                terminal.note("the stored post \(id) cannot be read: \(error.description)")
            }
        }
        guard terminal.isJSON else {
            let heart = post.map { "\($0.likedByMe ? "♥" : "♡") \($0.likeCount)  " } ?? ""
            return terminal.line("\(heart)\(id): " + terminal.paint(text, color))
        }
        terminal.json(
            .members([
                ("post", .string(id)), ("outcome", .string(outcome)), ("likedByMe", post.map { .bool($0.likedByMe) }),
                ("likeCount", post.map { .integer(Int64($0.likeCount)) }),
            ])
        )
    }
}
