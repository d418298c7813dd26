/// The value of a field by which stored entities are found and ordered.
///
/// The order is that of SQLite: no value first, then numbers, then texts by their bytes in UTF-8.
public enum FieldValue: Sendable, Hashable {
    case none
    case integer(Int64)
    case real(Double)
    case text(String)

    /// Less than zero if the first one comes first, zero if they are in the same place. "Not a number" counts as no value.
    package static func order(_ left: FieldValue, _ right: FieldValue) -> Int {
        switch (left.comparable, right.comparable) {
        case (.none, .none): return 0
        case (.integer(let left), .integer(let right)): return left < right ? -1 : left > right ? 1 : 0
        case (.text(let left), .text(let right)):
            if left.utf8.elementsEqual(right.utf8) { return 0 }
            return left.utf8.lexicographicallyPrecedes(right.utf8) ? -1 : 1
        case (let left, let right) where left.rank == right.rank:
            return left.number < right.number ? -1 : left.number > right.number ? 1 : 0
        case (let left, let right): return left.rank < right.rank ? -1 : 1
        }
    }

    private var comparable: FieldValue {
        if case .real(let number) = self, number.isNaN { return .none }
        return self
    }

    private var rank: Int {
        switch self {
        case .none: 0
        case .integer, .real: 1
        case .text: 2
        }
    }

    private var number: Double {
        switch self {
        case .integer(let number): Double(number)
        case .real(let number): number
        case .none, .text: 0
        }
    }
}
/// A field of an entity for the index of its name.
package struct DiskField: Sendable, Hashable {
    package let name: String
    package let value: FieldValue

    package init(_ name: String, _ value: FieldValue) {
        self.name = name
        self.value = value
    }

    /// About the bytes that it takes in its table and indices.
    var bytes: Int64 {
        guard case .text(let text) = value else { return 64 }
        let words = name == Self.text ? text.utf8.count { $0 == UInt8(ascii: " ") } : 0
        return 64 * Int64(words + 1) + 2 * Int64(text.utf8.count)
    }

    /// The name of the index for the search in texts. Its values are words in lower case, separated by spaces.
    package static let text = "=text"
}
