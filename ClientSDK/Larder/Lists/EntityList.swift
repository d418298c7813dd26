import Foundation
import LarderCoding

/// A list of entities as one read gives it, with the cursors of its neighbours.
public struct EntityList<Item: Entity>: Sendable, Equatable {
    /// The items in order.
    public var items: [Item]
    /// Where the items after these begin; nil at the end, and where the server does not page.
    public var nextCursor: String?
    /// Where the items before these begin.
    public var previousCursor: String?

    /// A list.
    public init(_ items: [Item], nextCursor: String? = nil, previousCursor: String? = nil) {
        self.items = items
        self.nextCursor = nextCursor
        self.previousCursor = previousCursor
    }

    /// How such a list is stored: the items by themselves, and an index with the cursors.
    public static var normalizer: Normalizer<EntityList> { normalizer(showing: .complete) }

    /// How such a list is stored whose items hold less than all of an entity.
    public static func normalizer(showing completeness: Completeness) -> Normalizer<EntityList> {
        Normalizer(
            split: { list, collector in
                for item in list.items { collector.add(item, completeness: completeness) }
                return Array(try JSONEncoder().encode([list.nextCursor, list.previousCursor]))
            },
            join: { rest, lookup in
                // Not by Foundation: a list is put together whenever anything in it changes.
                let cursors = try JSONParser.parse(rest).array
                guard let cursors, cursors.count == 2 else {
                    throw LarderError(.storage, "A stored list has no cursors.")
                }
                return EntityList(
                    lookup.entities(Item.self),
                    nextCursor: cursors[0].string,
                    previousCursor: cursors[1].string
                )
            }
        )
    }
}

extension Resource {
    /// A list of entities.
    ///
    /// - Parameters:
    ///   - completeness: how much of an entity the list shows.
    ///   - fetch: gets it; see `init(_:_:freshness:policy:codec:fetch:)`.
    public static func list<Item: Entity>(
        _ name: String,
        _ parameters: [String: String] = [:],
        of type: Item.Type = Item.self,
        showing completeness: Completeness = .complete,
        freshness: FreshnessDemand = .interactive,
        policy: ReadPolicy = .staleWhileRevalidate,
        fetch: @escaping @Sendable (FetchContext) async throws -> Fetched<Value>
    ) -> Resource where Value == EntityList<Item> {
        Resource(
            name,
            parameters,
            of: EntityList.normalizer(showing: completeness),
            freshness: freshness,
            policy: policy,
            fetch: fetch
        )
    }
}
