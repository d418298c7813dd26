public import Larder
public import LarderModels

extension HTTPSource.Paging where Item: Hashable, Content == Page<Item> {
    /// The pages of the demo backend: `items`, `nextCursor` and `previousCursor`, asked for with `limit`, `after`, `before` and, where the
    /// list has it, `around`.
    public static var demo: Self {
        cursor(items: { $0.items }, next: { $0.nextCursor }, parameter: "after")
            .bothWays(previous: { $0.previousCursor }, around: "around")
    }

    /// The same pages, of which a part can be fetched: `fields=id,version`, and `ids` at another path.
    static func demo(itemsAt path: String) -> Self {
        demo.indexed(
            entries: { (index: Page<IndexEntry>) in index.items.map { ($0.id, $0.version) } },
            next: { $0.nextCursor },
            previous: { $0.previousCursor },
            itemsAt: path
        )
    }
}

private struct IndexEntry: Codable, Sendable, Hashable {
    let id: String
    let version: Int64
}
