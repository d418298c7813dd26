/// Header fields in order with repeats (RFC 9110 §5).
///
/// A lookup is a linear search. Values have no CR, LF or NUL.
public struct Fields: Sendable, Hashable, ExpressibleByDictionaryLiteral, Sequence {
    /// One field line.
    public struct Field: Sendable, Hashable {
        /// The field's name.
        public let name: FieldName
        /// The field's value.
        public let value: String
    }

    private var fields: [Field] = []

    /// No fields.
    public init() {}

    /// Fields in the order of the literal.
    public init(dictionaryLiteral elements: (FieldName, String)...) {
        for (name, value) in elements { add(name, value) }
    }

    /// The number of field lines.
    public var count: Int { fields.count }

    /// The value of the first field line with that name.
    public subscript(name: FieldName) -> String? { fields.first { $0.name == name }?.value }

    /// The values of all field lines with that name, in order.
    public func values(of name: FieldName) -> [String] { fields.filter { $0.name == name }.map(\.value) }

    /// The values of all field lines with that name as one list (RFC 9110 §5.3), or nil if there are none.
    public func combined(_ name: FieldName) -> String? {
        let values = values(of: name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// Adds a field line at the end. CR, LF and NUL in the value become spaces (RFC 9110 §5.5): a value cannot end its line.
    public mutating func add(_ name: FieldName, _ value: String) {
        fields.append(Field(name: name, value: Self.cleaned(value)))
    }

    /// Replaces all field lines with that name by one, at the place of the first.
    public mutating func set(_ name: FieldName, _ value: String) {
        let field = Field(name: name, value: Self.cleaned(value))
        guard let first = fields.firstIndex(where: { $0.name == name }) else { return fields.append(field) }
        fields[first] = field
        var index = fields.count - 1
        while index > first {
            if fields[index].name == name { fields.remove(at: index) }
            index -= 1
        }
    }

    /// Removes all field lines with that name.
    public mutating func remove(_ name: FieldName) { fields.removeAll { $0.name == name } }

    /// Removes all field lines whose name satisfies the predicate.
    public mutating func removeAll(where isChosen: (FieldName) -> Bool) { fields.removeAll { isChosen($0.name) } }

    /// Whether a field line with that name exists.
    public func contains(_ name: FieldName) -> Bool { fields.contains { $0.name == name } }

    /// The field lines in order.
    public func makeIterator() -> IndexingIterator<[Field]> { fields.makeIterator() }

    private static func cleaned(_ value: String) -> String {
        guard value.utf8.contains(where: { $0 == 0x0D || $0 == 0x0A || $0 == 0 }) else { return value }
        let bytes = value.utf8.map { $0 == 0x0D || $0 == 0x0A || $0 == 0 ? 0x20 : $0 }
        return String(decoding: bytes, as: UTF8.self)
    }
}
