import LarderSQLite

extension DiskConnection {
    // MARK: Indices

    /// An index of the store.
    struct Index {
        let number: Int64
        /// The last entity that it has, while it is being built; nil if it was built.
        let through: String?
    }

    /// The indices of a type by name.
    func indices(ofType type: String) throws(SQLiteError) -> [String: Index] {
        let statement = try prepared(.indices)
        defer { statement.reset() }
        try statement.bind(type, at: 1)
        var found: [String: Index] = [:]
        while try statement.step() {
            let through = statement.isNull(2) ? nil : statement.text(2)
            found[statement.text(0)] = Index(number: statement.int64(1), through: through)
        }
        return found
    }

    func indexing(_ names: Set<String>, ofType type: String) throws(SQLiteError) -> String? {
        let found = try indices(ofType: type)
        let missing = names.subtracting(found.keys)
        if missing.isEmpty {
            if let through = found.values.lazy.compactMap(\.through).first { return through }
            if found.count == names.count { return nil }
        }
        for name in missing.sorted() { try run(.addIndex, [type, name]) }
        try run(.indexedThrough, [type, ""])
        return ""
    }

    func setIndexed(_ names: Set<String>, ofType type: String, through last: String?) throws(SQLiteError) {
        if let last { return try run(.indexedThrough, [type, last]) }
        // No entity has fields of the others any more.
        for (name, index) in try indices(ofType: type) where !names.contains(name) {
            try run(.dropIndex, [], numbers: [index.number])
        }
        try run(.indexed, [type])
    }

    /// Replaces the indexed fields of a row. Those without an index are left out.
    func setFields(_ fields: [DiskField], ofType type: String, row: Int64) throws(SQLiteError) {
        let indices = try indices(ofType: type)
        guard !indices.isEmpty else { return }
        try run(.dropFields, [], numbers: [row])
        for field in fields {
            guard let number = indices[field.name]?.number else { continue }
            guard field.name == DiskField.text, case .text(let words) = field.value else {
                try put(field.value, number, row)
                continue
            }
            for word in Set(words.split(separator: " ")) { try put(.text(String(word)), number, row) }
        }
    }

    private func put(_ value: FieldValue, _ index: Int64, _ row: Int64) throws(SQLiteError) {
        let statement = try prepared(.putField)
        try statement.bind(index, at: 1)
        try bind(value, to: statement, at: 2)
        try statement.bind(row, at: 3)
        try statement.run()
    }

    private func bind(_ value: FieldValue, to statement: Statement, at index: Int32) throws(SQLiteError) {
        switch value {
        case .none: try statement.bindNull(at: index)
        case .integer(let number): try statement.bind(number, at: index)
        // SQLite stores "not a number" as NULL.
        case .real(let number): try statement.bind(number, at: index)
        case .text(let text): try statement.bind(text, at: index)
        }
    }

    // MARK: Searching

    /// So many rows are sorted by looking up the field of each; with more, the index of the order is walked.
    private static let rowsSortedMaximum = 1_500

    /// Requires a transaction, so that all statements see the same rows.
    func search(_ search: DiskSearch) throws(SQLiteError) -> DiskSearch.Result? {
        let built = try indices(ofType: search.type).compactMapValues { $0.through == nil ? $0.number : nil }
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

    private func rows(_ condition: DiskSearch.Condition, _ index: Int64) throws(SQLiteError) -> Set<Int64> {
        switch condition {
        case .anyOf(_, let values):
            var rows: Set<Int64> = []
            for value in values {
                let statement = try prepared(.fieldIs)
                try statement.bind(index, at: 1)
                try bind(value, to: statement, at: 2)
                try read(statement, into: &rows)
            }
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

    private func rows(_ index: Int64, from low: FieldValue?, to high: FieldValue?) throws(SQLiteError) -> Set<Int64> {
        let statement = try prepared(.fieldBetween)
        try statement.bind(index, at: 1)
        var isText = false
        if case .text? = low ?? high { isText = true }
        try bind(low ?? (isText ? .text("") : .real(-.infinity)), to: statement, at: 2)
        // An empty blob follows every text.
        if high == nil, isText { try statement.bind([UInt8](), at: 3) }
        if let bound = high ?? (isText ? nil : .real(.infinity)) { try bind(bound, to: statement, at: 3) }
        var rows: Set<Int64> = []
        try read(statement, into: &rows)
        return rows
    }

    private func read(_ statement: Statement, into rows: inout Set<Int64>) throws(SQLiteError) {
        defer { statement.reset() }
        while try statement.step() { rows.insert(statement.int64(0)) }
    }

    private func byKey(_ rows: Set<Int64>) throws(SQLiteError) -> DiskSearch.Result {
        let statement = try prepared(.keyOfRow)
        var ids: [String] = []
        for row in rows {
            try statement.bind(row, at: 1)
            if try statement.step() { ids.append(statement.text(0)) }
            statement.reset()
        }
        return DiskSearch.Result(ids: ids.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    }

    private func sorted(
        _ rows: Set<Int64>,
        _ index: Int64,
        _ order: DiskSearch.Order
    ) throws(SQLiteError) -> DiskSearch.Result {
        let statement = try prepared(.fieldOfRow)
        var found: [(value: FieldValue, id: String)] = []
        for row in rows {
            try statement.bind(row, at: 1)
            try statement.bind(index, at: 2)
            if try statement.step() { found.append((value(statement, 1), statement.text(0))) }
            statement.reset()
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
    ) throws(SQLiteError) -> DiskSearch.Result {
        let statement = try prepared(order.isDescending ? .fieldsDescending : .fieldsAscending)
        defer { statement.reset() }
        try statement.bind(index, at: 1)
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
