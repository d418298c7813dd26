public import Larder
public import LarderModels

extension HTTPSource.Paging where Item: Hashable, Content == Page<Item> {
    /// The pages of the demo backend: `items` and `nextCursor`, asked for with `limit` and `after`.
    public static var demo: Self { cursor(items: { $0.items }, next: { $0.nextCursor }, parameter: "after") }
}
