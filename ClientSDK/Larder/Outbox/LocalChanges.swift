/// What an operation shows at once, before the server knows of it: over whatever the server says, until it has it.
///
/// Changes are applied to whatever the server's value is at the time, so they must do no more when they are applied to a value
/// that has them already: «liked», and not «one like more».
public struct LocalChanges: Sendable {
    var entities: [(key: EntityKey, apply: @Sendable ((any Sendable)?) -> (any Sendable)?)] = []
    var queries: [(key: QueryKey, apply: @Sendable (inout [EntityKey]) -> Void)] = []

    init() {}

    /// Changes an entity, where there is one.
    public mutating func modify<E: Entity>(
        _ type: E.Type,
        _ id: String,
        _ change: @escaping @Sendable (inout E) -> Void
    ) {
        entities.append(
            (
                E.key(id),
                { value in
                    guard var entity = value as? E else { return value }
                    change(&entity)
                    return entity
                }
            )
        )
    }

    /// Shows an entity that the server does not have.
    public mutating func create<E: Entity>(_ entity: E) {
        entities.append((entity.entityKey, { value in value ?? entity }))
    }

    /// Shows an entity no more.
    public mutating func remove<E: Entity>(_ type: E.Type, _ id: String) { entities.append((E.key(id), { _ in nil })) }

    /// Changes which entities a list names.
    public mutating func edit(_ list: QueryKey, _ change: @escaping @Sendable (inout [EntityKey]) -> Void) {
        queries.append((list, change))
    }
}
