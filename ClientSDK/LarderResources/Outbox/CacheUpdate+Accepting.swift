import LarderStorage

extension CacheUpdate {
    /// Stores an entity as a reply to a read of it would be stored: with its validator and its lifetime.
    package mutating func put<E: CacheEntity>(_ entity: E, as answer: Fetched<E>) throws(LarderError) {
        steps += try Resource<E>.entity(entity.id) { _ in .gone }.steps(storing: entity, as: answer)
    }

    /// Keeps local changes that the server has accepted without returning a value: stored values have them and are stale.
    package mutating func keep(_ changes: Outbox.LocalChanges) { steps += changes.accepted }
}
