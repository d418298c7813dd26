import LarderStorage
import Synchronization

extension EntityQuery {
    // The pending changes are taken before any stored value is read. A change that the server accepts meanwhile is then applied to a value
    // that has it already, which has no effect, and is never missing in between.

    /// Runs the query on a thread that may wait for the disk.
    func run() throws(LarderError) -> [Entity] {
        do { return try select().result } catch { throw LarderError(error) }
    }

    private func select() throws -> Selection {
        guard !core.isClosed else { throw CacheCore.isClosedError }
        core.checkForeignCommits(at: core.now())
        let pending = core.overlays.pending { $0.type == Entity.entityType }
        var selection = Selection(self)
        let disk = core.contentDisk
        // Those with rows in memory, or removed there, and those without one, as of a value that no store can take.
        var special = Set(pending.keys).union(core.rowless.entities.filter { $0.type == Entity.entityType })
        let kept = try core.memoryRows.used?.read {
            try $0.entityIDs(ofType: Entity.entityType, withDeletions: true)
        }
        for id in kept ?? [] { special.insert(EntityKey(type: Entity.entityType, id: id)) }
        for key in special {
            let stored = core.entity(key, Self.decode)?.stored.value
            let visible = pending[key].map { $0.reduce(stored) { $1.change.applied(to: $0) } } ?? stored
            selection.take(visible as? Entity)
        }
        if let disk, try !findByIndex(disk, &selection, special) { try readAll(disk, &selection, special) }
        return selection
    }

    private static var decode: @Sendable ([UInt8]) throws -> any Sendable { { try Entity.codec.decode($0) } }

    /// So many more are taken from the index of the order than the limit asks for.
    private static var reserve: Int { 16 }

    /// - Returns: false if there is no index for it.
    private func findByIndex(
        _ disk: DiskStore,
        _ selection: inout Selection,
        _ special: Set<EntityKey>
    ) throws -> Bool {
        guard var search, disk.configuration.transform == nil else { return false }
        // Commits between the transactions move the places of entities.
        var taken: Set<String> = []
        let (known, isOrdered) = (selection.count, search.order != nil || orders.isEmpty)
        if let countMaximum { search.countMinimum = countMaximum + special.count + Self.reserve }
        while true {
            let wanted = search
            guard let found = try disk.read({ transaction in try transaction.search(wanted) }) else { return false }
            for id in found.ids where taken.insert(id).inserted {
                let key = EntityKey(type: Entity.entityType, id: id)
                if special.contains(key) { continue }
                selection.take(core.entity(key, Self.decode)?.stored.value as? Entity)
                // Those that follow come later in the order too.
                if isOrdered, let countMaximum, selection.count - known >= countMaximum { return true }
            }
            guard !found.isAll else { return true }
            search.countMinimum = search.countMinimum.map { $0 * 8 }
        }
    }

    /// What the indices can do of the query; nil: nothing.
    private var search: DiskSearch? {
        var search = DiskSearch(type: Entity.entityType)
        for condition in conditions {
            guard let (field, test) = condition.indexed, let index = Self.index(of: field) else { continue }
            search.conditions.append(test.condition(index))
        }
        if !words.isEmpty, Entity.indices.contains(where: \.isText) { search.conditions.append(.words(words)) }
        if orders.count == 1, countMaximum != nil, let order = orders.first, let index = Self.index(of: order.field) {
            search.order = .init(index, isDescending: order.isDescending)
        }
        return search.conditions.isEmpty && search.order == nil ? nil : search
    }

    private static func index(of field: any PartialKeyPath<Entity> & Sendable) -> String? {
        Entity.indices.first { $0.field == field }?.name
    }

    private func readAll(_ disk: DiskStore, _ selection: inout Selection, _ special: Set<EntityKey>) throws {
        for id in try disk.read({ try $0.entityIDs(ofType: Entity.entityType) }) {
            let key = EntityKey(type: Entity.entityType, id: id)
            if !special.contains(key) { selection.take(core.entity(key, Self.decode)?.stored.value as? Entity) }
        }
    }

    // MARK: Indices

    /// Builds the indices of the type, unless the store has them.
    nonisolated(nonsending) func buildIndices() async throws(LarderError) {
        let wanted = Set(Entity.indices.map(\.name))
        guard !wanted.isEmpty, let disk = core.contentDisk, disk.configuration.transform == nil else { return }
        let core = core
        let built = try await core.reading { () async throws(LarderError) in
            do { return try disk.read { try $0.indices(ofType: Entity.entityType) } } catch { throw LarderError(error) }
        }
        guard built != wanted else { return }
        await core.changing {
            // If it fails, the query reads all entities instead.
            core.reporting { try Self.buildIndices(wanted, disk) }
        }
    }

    /// Indexes the stored entities of the type in one transaction.
    static func buildIndices(_ names: Set<String>, _ disk: DiskStore) throws {
        let type = Entity.entityType
        try disk.write { transaction in
            try transaction.setIndices(names, ofType: type)
            for id in try transaction.entityIDs(ofType: type) {
                let key = EntityKey(type: type, id: id)
                guard let row = try transaction.entity(key) else { continue }
                var fields: [DiskField] = []
                do { fields = try Entity.codec.decode(row.payload).indexedFields } catch {
                    // The row of another version of the type: no query finds it, and a read of the entity reports the error.
                }
                try transaction.setFields(fields, of: key)
            }
        }
    }

    /// The entities that the query has accepted so far.
    struct Selection {
        private let query: EntityQuery
        private let texts: EntityIndex<Entity>?
        private let words: SearchWords?
        private var entities: [Entity] = []
        private var places: [QueryPlace] = []

        init(_ query: EntityQuery) {
            self.query = query
            texts = Entity.indices.first { $0.isText }
            words = query.words.isEmpty ? nil : SearchWords(query.words)
        }

        /// The number of accepted entities.
        var count: Int { entities.count }

        mutating func take(_ entity: Entity?) {
            guard let entity, query.conditions.allSatisfy({ $0.accepts(entity) }), matches(entity) else { return }
            let values = query.orders.map { $0.value(entity) }
            places.append(QueryPlace(values: values, id: entity.entityID, index: entities.count))
            entities.append(entity)
        }

        private func matches(_ entity: Entity) -> Bool {
            guard let words else { return true }
            guard let texts, case .text(let text) = texts.value(entity) else { return false }
            return words.areFound(in: text)
        }

        /// In order, and not more than the limit.
        var result: [Entity] {
            let directions = query.orders.map(\.isDescending)
            return places.sorted { $0.precedes($1, directions) }.prefix(query.countMaximum ?? .max)
                .map { entities[$0.index] }
        }
    }
}

/// The place of an entity in the order of a query. Sorting these is six times as fast as sorting entities of a generic type.
private struct QueryPlace {
    let values: [FieldValue]
    let id: String
    /// The index of the entity.
    let index: Int

    /// - Parameter directions: whether each value is sorted in descending order.
    func precedes(_ other: QueryPlace, _ directions: [Bool]) -> Bool {
        for (index, isDescending) in directions.enumerated() {
            let order = FieldValue.order(values[index], other.values[index])
            if order != 0 { return isDescending ? order > 0 : order < 0 }
        }
        return id.utf8.lexicographicallyPrecedes(other.id.utf8)
    }
}
