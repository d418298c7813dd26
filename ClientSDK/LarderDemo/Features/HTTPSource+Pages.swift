public import Larder
public import LarderModels

extension HTTPSource.Paging where Item: Hashable, Content == Page<Item> {
    /// The pages of the demo backend: `items`, `nextCursor` and `previousCursor`, asked for with `limit`, `after`, `before` and, where the
    /// list has it, `around`.
    public static var demo: Self {
        cursor(items: { $0.items }, next: { $0.nextCursor }, parameter: "after")
            .bothWays(previous: { $0.previousCursor }, around: "around")
    }
}
