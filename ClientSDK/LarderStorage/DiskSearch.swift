/// A search for the identifiers of stored entities by their indices.
package struct DiskSearch: Sendable {
    package enum Condition: Sendable {
        /// One of the values.
        case anyOf(String, [FieldValue])
        /// Between two values of one kind, both included; nil: no bound. No value is never found.
        case range(String, FieldValue?, FieldValue?)
        /// Words that begin with each of these.
        case words([String])

        package var index: String {
            switch self {
            case .anyOf(let name, _), .range(let name, _, _): name
            case .words: DiskField.text
            }
        }
    }

    package struct Order: Sendable {
        let index: String
        let isDescending: Bool

        package init(_ index: String, isDescending: Bool) {
            self.index = index
            self.isDescending = isDescending
        }
    }

    package var type: String
    package var conditions: [Condition]
    /// The order of the result; nil: by identifier.
    package var order: Order?
    /// The least number of identifiers to return, if so many are found; nil: all.
    package var countMinimum: Int?

    package init(type: String, conditions: [Condition] = [], order: Order? = nil, countMinimum: Int? = nil) {
        self.type = type
        self.conditions = conditions
        self.order = order
        self.countMinimum = countMinimum
    }

    package struct Result: Sendable {
        /// In the order of the search.
        package var ids: [String] = []
        /// Whether there are no others.
        package var isAll = true
    }
}

extension DiskStore.ReadTransaction {
    /// The identifiers that a search finds; nil if one of its indices was not built.
    package func search(_ search: DiskSearch) throws(DiskError) -> DiskSearch.Result? {
        try connection.perform { try connection.search(search) }
    }

    /// Entities of a type in the order of their identifiers. A damaged one is left out, reported and removed.
    ///
    /// - Parameters:
    ///   - last: the identifier that precedes them; nil: from the first.
    ///   - isRead: whether the payload of an entity is read; the others have the result nil.
    /// - Returns: at most `limit` identifiers; fewer only at the end.
    package func entities(
        ofType type: String,
        after last: String?,
        limit: Int,
        where isRead: (EntityKey) -> Bool
    ) throws(DiskError) -> [(id: String, entity: DiskEntity?)] {
        try connection.perform { try connection.entities(ofType: type, after: last, limit: limit, where: isRead) }
    }

    /// The names of the indices of a type that were built.
    package func indices(ofType type: String) throws(DiskError) -> Set<String> {
        try connection.perform { Set(try connection.indices(ofType: type).filter { $0.value.through == nil }.keys) }
    }
}

extension DiskStore.WriteTransaction {
    /// Begins to build the indices of a type in place of those that it has, or goes on. `put` keeps them from then on; entities that are stored
    /// already are indexed by `setFields`, in the order of their identifiers. No search uses them before they were built.
    ///
    /// - Returns: the identifier of the last entity that they have, empty if they have none; nil if they were built.
    package func indexing(_ names: Set<String>, ofType type: String) throws(DiskError) -> String? {
        try connection.perform { try connection.indexing(names, ofType: type) }
    }

    /// Notes that the entities up to this one are in the indices of a type; nil: all, so that the indices were built.
    package func setIndexed(_ names: Set<String>, ofType type: String, through last: String?) throws(DiskError) {
        try connection.perform { try connection.setIndexed(names, ofType: type, through: last) }
    }

    /// Indexes a stored entity; without fields nothing finds it.
    package func setFields(_ fields: [DiskField], of key: EntityKey) throws(DiskError) {
        try connection.perform {
            guard let row = try connection.sum(.entity, key.type, key.id)?.row else { return }
            try connection.setFields(fields, ofType: key.type, row: row)
        }
    }
}
