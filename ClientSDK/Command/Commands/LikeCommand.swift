import Larder
import LarderCoding
import LarderModels

/// `larder like` and `larder unlike`: shown at once, kept until the server has it.
struct LikeCommand {
    let kitchen: Kitchen

    init(_ kitchen: Kitchen) { self.kitchen = kitchen }

    func run(_ post: String, _ isLike: Bool) async throws {
        let id = try kitchen.client.likes.set(isLike, post)
        guard let id else {
            await tell(post, "nothing", "it undid what was not sent yet; nothing is left to send", .green)
            return await kitchen.finish()
        }
        await kitchen.drain()
        await finish(post, id, isLike)
        await kitchen.finish(own: [id])
        if case .refused(let error)? = kitchen.journal.end(of: id) {
            throw Failure(
                "\(post): \(Failure.sentence(error.description)) The heart is as it was; larder outbox drop \(id) forgets it."
            )
        }
    }

    private func finish(_ post: String, _ id: OperationID, _ isLike: Bool) async {
        switch kitchen.journal.end(of: id) {
        case .accepted: await tell(post, "sent", "the server has it", .green)
        case .refused: break
        case .postponed(let error)? where error.code != .offline:
            await tell(post, "kept", "kept here: \(Failure.sentence(error.description)) It is sent again", .yellow)
        default:
            let why = kitchen.isOffline ? "--offline" : "\(kitchen.arguments.server) cannot be reached"
            await tell(post, "kept", "kept here (\(why)); the next command that reaches the server sends it", .yellow)
        }
    }

    private func tell(_ id: String, _ outcome: String, _ text: String, _ colour: Terminal.Colour) async {
        let terminal = kitchen.terminal
        // What is stored of the post, with what was changed here on top.
        var post: Post?
        do {
            post = try await kitchen.cache.value(kitchen.client.feed.post(id), .cacheOnly)
        } catch {
            if error.code != .notCached, error.code != .gone {
                terminal.note("what is stored of \(id) cannot be read: \(error.description)")
            }
        }
        guard terminal.isJSON else {
            let heart = post.map { "\($0.likedByMe ? "♥" : "♡") \($0.likeCount)  " } ?? ""
            return terminal.line("\(heart)\(id): " + terminal.paint(text, colour))
        }
        terminal.json(
            .members([
                ("post", .string(id)), ("outcome", .string(outcome)), ("likedByMe", post.map { .bool($0.likedByMe) }),
                ("likeCount", post.map { .integer(Int64($0.likeCount)) }),
            ])
        )
    }
}
