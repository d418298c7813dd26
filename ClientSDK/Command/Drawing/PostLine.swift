import Larder
import LarderModels
import LarderTime

/// Posts on a terminal.
enum PostLine {
    /// A post in two lines.
    static func lines(
        _ post: Post,
        _ names: Names,
        _ terminal: Terminal,
        _ columns: Int,
        _ now: WallTime,
        isUnsent: Bool
    ) -> [String] {
        let heart = post.likedByMe ? terminal.paint("♥ \(post.likeCount)", .red) : "♡ \(post.likeCount)"
        var head = [
            terminal.paint(TextWidth.pad(TextWidth.clean(post.id), 9), .dim),
            terminal.paint(names.handle(post.authorId), .cyan),
            terminal.paint(Ages.text(from: post.createdAt, to: now), .dim), heart,
        ]
        if isUnsent { head.append(terminal.paint("not sent yet", .yellow)) }
        if post.image != nil { head.append("▣") }
        if post.editedAt != nil { head.append(terminal.paint("edited", .dim)) }
        let text = TextWidth.fit(TextWidth.clean(post.text), max(8, columns - 10))
        return [head.joined(separator: "  "), "          " + text]
    }

    /// What has changed between two lists, a line each.
    static func changes(_ old: [Post], _ new: [Post], _ names: Names) -> [String] {
        let before = Dictionary(old.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
        var lines: [String] = []
        for post in new {
            guard let earlier = before[post.id] else {
                let text = TextWidth.fit(TextWidth.clean(post.text), 70)
                lines.append(
                    "+ \(TextWidth.clean(post.id)) \(names.handle(post.authorId)) ♥ \(post.likeCount): \(text)"
                )
                continue
            }
            guard earlier != post else { continue }
            var parts: [String] = []
            if earlier.likeCount != post.likeCount || earlier.likedByMe != post.likedByMe {
                parts.append("♥ \(earlier.likeCount) → \(post.likeCount)\(post.likedByMe ? " (you too)" : "")")
            }
            if earlier.text != post.text { parts.append("now: \(TextWidth.fit(TextWidth.clean(post.text), 70))") }
            if !parts.isEmpty { lines.append("~ \(TextWidth.clean(post.id)) " + parts.joined(separator: " · ")) }
        }
        let after = Set(new.map(\.id))
        // What only fell off the end of the list is still there.
        for post in old where !after.contains(post.id) && old.count <= new.count {
            lines.append("- \(TextWidth.clean(post.id))")
        }
        return lines
    }

    /// The posts whose heart is not the server's yet.
    static func unsent(_ kitchen: Kitchen) -> Set<String> {
        Set(
            kitchen.cache.outbox.entries.compactMap { entry in
                guard entry.operation == "like", entry.state != .refused else { return nil }
                return Kitchen.input(entry, as: Likes.Tap.self)?.postID
            }
        )
    }
}
