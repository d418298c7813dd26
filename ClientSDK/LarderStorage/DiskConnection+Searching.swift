package import LarderSQLite

extension DiskConnection {
    // MARK: Indices

    /// The names of the indices of a type.
    package func indices(ofType type: String) throws(DiskError) -> Set<String> { Set(try numbers(ofType: type).keys) }

    /// The numbers of the indices of a type by name.
    private func numbers(ofType type: String) throws(DiskError) -> [String: Int64] {
        let found = try all(.indices, type) { ($0.text(0), $0.int64(1)) }
        return Dictionary(found, uniquingKeysWith: { first, _ in first })
    }

    /// Makes the indices of a type these. `put` keeps them from then on; the fields of all stored entities must be set in the same
    /// transaction, by which those of a removed index go.
    package func setIndices(_ names: Set<String>, ofType type: String) throws(DiskError) {
        let known = try numbers(ofType: type)
        for (name, number) in known where !names.contains(name) { try run(.dropIndex, number) }
        for name in names.subtracting(known.keys).sorted() { try run(.addIndex, type, name) }
    }

    /// Indexes a stored entity; without fields nothing finds it.
    package func setFields(_ fields: [DiskField], of key: EntityKey) throws(DiskError) {
        guard let row = try row(of: .entity(key)) else { return }
        try setFields(fields, ofType: key.type, row: row.number)
    }

    /// Replaces the indexed fields of a row. Those without an index are left out.
    func setFields(_ fields: [DiskField], ofType type: String, row: Int64) throws(DiskError) {
        let numbers = try numbers(ofType: type)
        guard !numbers.isEmpty else { return }
        try run(.dropFields, row)
        for field in fields {
            guard let number = numbers[field.name] else { continue }
            guard field.name == DiskField.text, case .text(let words) = field.value else {
                try run(.putField, number, field.value, row)
                continue
            }
            for word in Set(words.split(separator: " ")) { try run(.putField, number, String(word), row) }
        }
    }

    // MARK: Searching

    /// So many rows are sorted by looking up the field of each; with more, the index of the order is walked.
    private static let rowsSortedMaximum = 1_500

    /// The identifiers that a search finds; nil if the store does not have one of its indices. Requires a transaction, so that all
    /// statements see the same rows.
    package func search(_ search: DiskSearch) throws(DiskError) -> DiskSearch.Result? {
        let built = try numbers(ofType: search.type)
        var rows: Set<Int64>?
        for condition in search.conditions {
            guard let index = built[condition.index] else { return nil }
            let found = try self.rows(condition, index)
            rows = rows?.intersection(found) ?? found
        }
        guard let order = search.order else { return try byKey(rows ?? []) }
        guard let index = built[order.index] else { return nil }
        if let rows, rows.count <= Self.rowsSortedMaximum { return try sorted(rows, index, order) }
        return try walk(index, order, search.countMinimum, in: rows)
    }

    private func rows(_ condition: DiskSearch.Condition, _ index: Int64) throws(DiskError) -> Set<Int64> {
        switch condition {
        case .anyOf(_, let values):
            var rows: Set<Int64> = []
            for value in values { rows.formUnion(try all(.fieldIs, index, value) { $0.int64(0) }) }
            return rows
        case .range(_, let low, let high): return try rows(index, from: low, to: high)
        case .words(let words):
            var common: Set<Int64>?
            for word in words {
                // No letter or digit follows the last scalar.
                let found = try rows(index, from: .text(word), to: .text(word + "\u{10FFFF}"))
                common = common?.intersection(found) ?? found
            }
            return common ?? []
        }
    }

    private func rows(_ index: Int64, from low: FieldValue?, to high: FieldValue?) throws(DiskError) -> Set<Int64> {
        var isText = false
        if case .text? = low ?? high { isText = true }
        // An empty blob follows every text.
        let last: any SQLValue = isText ? [UInt8]() : FieldValue.real(.infinity)
        let first = low ?? (isText ? .text("") : .real(-.infinity))
        return Set(try all(.fieldBetween, index, first, high ?? last) { $0.int64(0) })
    }

    private func byKey(_ rows: Set<Int64>) throws(DiskError) -> DiskSearch.Result {
        var ids: [String] = []
        for row in rows { if let id = try first(.keyOfRow, row, read: { $0.text(0) }) { ids.append(id) } }
        return DiskSearch.Result(ids: ids.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    }

    private func sorted(
        _ rows: Set<Int64>,
        _ index: Int64,
        _ order: DiskSearch.Order
    ) throws(DiskError) -> DiskSearch.Result {
        var found: [(value: FieldValue, id: String)] = []
        for row in rows {
            let field = try first(.fieldOfRow, row, index) { (value($0, 1), $0.text(0)) }
            if let field { found.append(field) }
        }
        found.sort { left, right in
            let places = FieldValue.order(left.value, right.value)
            if places != 0 { return order.isDescending ? places > 0 : places < 0 }
            return left.id.utf8.lexicographicallyPrecedes(right.id.utf8)
        }
        return DiskSearch.Result(ids: found.map(\.id))
    }

    private func value(_ statement: Statement, _ column: Int32) -> FieldValue {
        switch statement.int64(2) {
        case 1: .integer(statement.int64(column))
        case 2: .real(statement.double(column))
        case 3: .text(statement.text(column))
        default: .none
        }
    }

    private func walk(
        _ index: Int64,
        _ order: DiskSearch.Order,
        _ countMinimum: Int?,
        in rows: Set<Int64>?
    ) throws(DiskError) -> DiskSearch.Result {
        try using(order.isDescending ? .fieldsDescending : .fieldsAscending, [index]) { statement in
            var found = DiskSearch.Result()
            while try statement.step() {
                if let rows, !rows.contains(statement.int64(0)) { continue }
                found.ids.append(statement.text(1))
                guard let countMinimum, found.ids.count >= countMinimum else { continue }
                found.isAll = false
                break
            }
            return found
        }
    }
}

extension FieldValue: SQLValue {
    package func bind(to statement: Statement, at index: Int32) throws(SQLiteError) {
        switch self {
        case .none: try statement.bindNull(at: index)
        case .integer(let number): try statement.bind(number, at: index)
        // SQLite stores "not a number" as NULL.
        case .real(let number): try statement.bind(number, at: index)
        case .text(let text): try statement.bind(text, at: index)
        }
    }
}
