import LarderStorage

extension EntityQuery {
    /// A comparison of a field of an entity. Texts are compared by their bytes in UTF-8. An optional field without a value equals only nil.
    public struct Comparison<Value: EntityField>: Sendable {
        let test: FieldTest

        /// The field has this value.
        public static func equal(_ value: Value) -> Self { anyOf([value]) }

        /// The field has one of these values.
        public static func anyOf(_ values: [Value]) -> Self { Self(test: .anyOf(values.map(\.fieldValue))) }

        /// The field has this value or a greater one.
        public static func atLeast(_ value: Value) -> Self { Self(test: .range(low: value.fieldValue, high: nil)) }

        /// The field has this value or a smaller one.
        public static func atMost(_ value: Value) -> Self { Self(test: .range(low: nil, high: value.fieldValue)) }

        /// The field is between two values, both included.
        public static func between(_ low: Value, _ high: Value) -> Self {
            Self(test: .range(low: low.fieldValue, high: high.fieldValue))
        }
    }
}

/// A comparison without its type of value.
enum FieldTest: Sendable {
    case anyOf([FieldValue])
    case range(low: FieldValue?, high: FieldValue?)

    func accepts(_ value: FieldValue) -> Bool {
        switch self {
        case .anyOf(let values): return values.contains { FieldValue.order($0, value) == 0 }
        case .range(let low, let high):
            // What has no value compares with nothing, as NULL in SQL.
            guard FieldValue.order(value, .none) != 0 else { return false }
            if let low, FieldValue.order(low, .none) == 0 || FieldValue.order(low, value) > 0 { return false }
            if let high, FieldValue.order(high, .none) == 0 || FieldValue.order(value, high) > 0 { return false }
            return true
        }
    }

    func condition(_ index: String) -> DiskSearch.Condition {
        switch self {
        case .anyOf(let values): .anyOf(index, values)
        case .range(let low, let high): .range(index, low, high)
        }
    }
}
