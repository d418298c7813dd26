/// What an operation shows at once, before the server knows of it: over whatever the server says, until it has it.
///
/// Changes are applied to whatever the server's value is at the time, so they must do no more when they are applied to a value
/// that has them already: «liked», and not «one like more».
public struct LocalChanges: Sendable {
    var entities: [(key: EntityKey, apply: @Sendable ((any Sendable)?) -> (any Sendable)?)] = []
    var queries: [(key: QueryKey, apply: @Sendable (inout [EntityKey]) -> Void)] = []
    /// For each change of an entity: whether a value has it already.
    var checks: [Check] = []

    struct Check: Sendable {
        let key: EntityKey
        let decode: @Sendable ([UInt8]) throws -> any Sendable
        let isMet: @Sendable ((any Sendable)?) -> Bool

        init<E: Entity>(_ key: EntityKey, _ isMet: @escaping @Sendable (E?) -> Bool) {
            self.key = key
            decode = { try E.codec.decode($0) }
            self.isMet = { isMet($0 as? E) }
        }
    }

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
        checks.append(
            Check(E.key(id)) { (value: E?) in
                guard let value else { return false }
                var changed = value
                change(&changed)
                return changed == value
            }
        )
    }

    /// Shows an entity that the server does not have.
    public mutating func create<E: Entity>(_ entity: E) {
        entities.append((entity.entityKey, { value in value ?? entity }))
        checks.append(Check(entity.entityKey) { (value: E?) in value != nil })
    }

    /// Shows an entity no more.
    public mutating func remove<E: Entity>(_ type: E.Type, _ id: String) {
        entities.append((E.key(id), { _ in nil }))
        // An entity that is not stored may be there all the same.
        checks.append(Check(E.key(id)) { (_: E?) in false })
    }

    /// Changes which entities a list names.
    public mutating func edit(_ list: QueryKey, _ change: @escaping @Sendable (inout [EntityKey]) -> Void) {
        queries.append((list, change))
    }
}
