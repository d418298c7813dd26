import Larder
import LarderDemo
import LarderModels

/// Formats posts.
enum PostLine {
    /// A post in two lines.
    static func lines(
        _ post: Post,
        _ names: [String: Profile],
        _ terminal: Terminal,
        _ columns: Int,
        _ now: WallTime,
        isUnsent: Bool
    ) -> [String] {
        let heart = post.likedByMe ? terminal.paint("♥ \(post.likeCount)", .red) : "♡ \(post.likeCount)"
        var head = [
            terminal.paint(TextWidth.pad(post.id, 9), .dim),
            terminal.paint(names.handle(post.authorID), .cyan),
            terminal.paint(TimeText.text(from: post.createdAt, to: now), .dim), heart,
        ]
        if isUnsent { head.append(terminal.paint("not sent yet", .yellow)) }
        if post.image != nil { head.append("▣") }
        if post.editedAt != nil { head.append(terminal.paint("edited", .dim)) }
        let text = TextWidth.fit(post.text, max(8, columns - 10))
        return [head.joined(separator: "  "), "          " + text]
    }

    /// The differences of two lists, one line each.
    static func changes(_ old: [Post], _ new: [Post], _ names: [String: Profile]) -> [String] {
        let changes = ListChanges(from: old, to: new)
        var lines: [String] = []
        for (earlier, post) in changes.edits {
            guard let earlier else {
                let text = TextWidth.fit(post.text, 70)
                lines.append("+ \(post.id) \(names.handle(post.authorID)) ♥ \(post.likeCount): \(text)")
                continue
            }
            var parts: [String] = []
            if earlier.likeCount != post.likeCount || earlier.likedByMe != post.likedByMe {
                parts.append("♥ \(earlier.likeCount) → \(post.likeCount)\(post.likedByMe ? " (you too)" : "")")
            }
            if earlier.text != post.text { parts.append("now: \(TextWidth.fit(post.text, 70))") }
            if !parts.isEmpty { lines.append("~ \(post.id) " + parts.joined(separator: " · ")) }
        }
        return lines + changes.deletions.map { "- \($0.id)" }
    }

    /// The IDs of posts with an unsent like.
    static func unsent(_ context: CommandContext) -> Set<String> {
        Set(
            context.cache.outbox.entries.compactMap { entry in
                entry.state == .rejected ? nil : context.tap(entry)?.postID
            }
        )
    }
}

/// The differences of two states of a list, newest first, whose old end may be cut off.
struct ListChanges<Item: Identifiable & Equatable> {
    /// The new and the changed items in the order of the new list; without an old one, an item is new.
    let edits: [(old: Item?, new: Item)]
    /// The items that are not in the new list, although one that is older than they are is.
    let deletions: [Item]

    init(from old: [Item], to new: [Item]) {
        let before = Dictionary(old.map { ($0.id, $0) }) { first, _ in first }
        edits = new.filter { before[$0.id] != $0 }.map { (before[$0.id], $0) }
        let after = Set(new.map(\.id))
        let end = old.lastIndex { after.contains($0.id) } ?? 0
        deletions = old.prefix(end).filter { !after.contains($0.id) }
    }
}
