import LarderEvents

extension EntityQuery {
    /// The results of a local query, now and after each change (`EntityQuery.updates`). Each iteration observes separately.
    struct Updates: AsyncSequence, Sendable {
        struct Iterator: AsyncIteratorProtocol {
            let query: EntityQuery<Entity>
            private var registration: EntityObservers.Registration?
            private var last: [Entity]?

            init(query: EntityQuery<Entity>) { self.query = query }

            mutating func next() async -> [Entity]? {
                while true {
                    if let registration {
                        guard await registration.changes.next() != nil else { return nil }
                    } else {
                        registration = query.core.entityObservers.add(Entity.entityType)
                    }
                    guard !query.core.isClosed, !Task.isCancelled else { return nil }
                    do throws(LarderError) {
                        let found = try await query.values()
                        if found == last { continue }
                        last = found
                        return found
                    } catch {
                        query.core.configuration.onEvent(.storageFailed(error))
                    }
                }
            }
        }

        let query: EntityQuery<Entity>

        func makeAsyncIterator() -> Iterator { Iterator(query: query) }
    }
}
