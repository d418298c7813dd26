import LarderEvents
import LarderTime

extension EntityQuery {
    /// The results of a local query, now and after each change (`EntityQuery.updates`). Each iteration observes separately.
    struct Updates: AsyncSequence, Sendable {
        struct Iterator: AsyncIteratorProtocol {
            let query: EntityQuery<Entity>
            private var observation: (changes: Mailbox<Void>, registration: EventRegistration)?
            private var last: [Entity]?

            init(query: EntityQuery<Entity>) { self.query = query }

            mutating func next() async -> [Entity]? {
                while true {
                    if let observation {
                        guard await observation.changes.next() != nil else { return nil }
                    } else {
                        let changes = Mailbox<Void>()
                        let registration = query.core.entityObservers.add { hasChanged in
                            if hasChanged(Entity.entityType) { changes.put(()) }
                        }
                        observation = (changes, registration)
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
