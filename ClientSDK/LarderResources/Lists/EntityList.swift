import Foundation
import LarderCoding
package import LarderStorage

/// A list of entities, or a page of one, as the source returned it.
public struct EntityList<Item: CacheEntity>: Sendable, Equatable {
    /// The items in order.
    public var items: [Item]
    /// The cursor of the next page; nil after the last one and for a list without pages. A page without items may have one.
    public var nextCursor: String?
    /// The cursor of the page of newer items; nil for the newest page, if the source has stated none, and for a stored list.
    public var previousCursor: String?

    public init(_ items: [Item], nextCursor: String? = nil, previousCursor: String? = nil) {
        self.items = items
        self.nextCursor = nextCursor
        self.previousCursor = previousCursor
    }

    /// Stores the items as entities, and an index with the cursor.
    package static var normalizer: Normalizer<EntityList> { normalizer(showing: .complete) }

    /// Stores the items as entities of the given completeness, and an index with the cursor.
    package static func normalizer(showing completeness: Completeness) -> Normalizer<EntityList> {
        Normalizer(
            split: { list, collector in
                for item in list.items { collector.add(item, completeness: completeness) }
                return Array(try JSONEncoder().encode([list.nextCursor]))
            },
            join: { rest, lookup in
                // `JSONDecoder` is too slow here: a list is joined again after every change of one of its entities.
                let cursors = try JSONParser.parse(rest).array
                guard let cursors, let next = cursors.first else {
                    throw LarderError(.storage, "A stored list has no cursors.")
                }
                return EntityList(lookup.entities(Item.self), nextCursor: next.string)
            }
        )
    }
}
