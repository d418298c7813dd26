import Larder
import LarderCoding
import LarderDemo
import LarderModels

/// `larder like` and `larder unlike`: shown at once, queued until the server has confirmed it.
struct LikeCommand {
    let context: CommandContext

    func run(_ post: String, _ isLike: Bool) async throws {
        // Taps on one post replace each other, so that there is an operation.
        guard let id = try context.client.likes.set(isLike, post) else { return await context.finish() }
        try await context.settle(id, post) { await report(post, $0, $1, $2) }
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
        let heart = post.map { "\($0.likedByMe ? "♥" : "♡") \($0.likeCount)  " } ?? ""
        terminal.result(
            [
                ("post", .string(id)), ("outcome", .string(outcome)), ("likedByMe", post.map { .bool($0.likedByMe) }),
                ("likeCount", post.map { .integer(Int64($0.likeCount)) }),
            ],
            "\(heart)\(id): " + terminal.paint(text, color)
        )
    }
}
