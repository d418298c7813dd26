/// A search for the identifiers of stored entities by their indices.
package struct DiskSearch: Sendable {
    package enum Condition: Sendable {
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
