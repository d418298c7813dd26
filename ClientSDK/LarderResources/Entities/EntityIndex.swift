public import Foundation
public import LarderStorage

/// A type whose values can be compared by a local query: text, numbers, flags, dates, and optional ones. An enumeration with a raw value
/// of such a type needs no code but the conformance.
public protocol EntityField: Sendable {
    /// The value as it is compared and stored in an index.
    var fieldValue: FieldValue { get }
}

extension EntityField where Self: RawRepresentable, RawValue: EntityField {
    public var fieldValue: FieldValue { rawValue.fieldValue }
}

extension String: EntityField {
    public var fieldValue: FieldValue { .text(self) }
}

extension Int: EntityField {
    public var fieldValue: FieldValue { .integer(Int64(self)) }
}

extension Int64: EntityField {
    public var fieldValue: FieldValue { .integer(self) }
}

extension Double: EntityField {
    public var fieldValue: FieldValue { .real(self) }
}

extension Bool: EntityField {
    public var fieldValue: FieldValue { .integer(self ? 1 : 0) }
}

extension Date: EntityField {
    public var fieldValue: FieldValue { .real(timeIntervalSinceReferenceDate) }
}

extension Optional: EntityField where Wrapped: EntityField {
    public var fieldValue: FieldValue { self?.fieldValue ?? .none }
}

/// An index of the entities of a type on disk, so that a local query reads only what it finds (`CacheEntity.indices`).
///
///     static let indices: [Index] = [
///         Index("isStarred", \.isStarred), Index("published", \.published), .text(\.title, \.summary),
///     ]
///
/// The first query of a type builds the indices that are missing, in one transaction, and waits for them, as do other changes of stored values:
/// some seconds with 100,000 stored entities. A store with a payload transform has none, because an index is readable
/// in the file: queries then read all entities of the type, with the same results.
public struct EntityIndex<Entity: CacheEntity>: Sendable {
    let name: String
    /// The indexed field; nil for texts.
    let field: (any PartialKeyPath<Entity> & Sendable)?
    let value: @Sendable (Entity) -> FieldValue

    /// An index of a field.
    ///
    /// - Parameters:
    ///   - name: the name of the index in the store. Choose another one if the meaning of the field changes, or if an earlier version of
    ///     the app had the index and a later one had not.
    ///   - field: the field that queries name.
    public init<Value: EntityField>(_ name: String, _ field: any KeyPath<Entity, Value> & Sendable) {
        self.name = name
        self.field = field
        value = { $0[keyPath: field].fieldValue }
    }

    private init(texts: [any KeyPath<Entity, String> & Sendable]) {
        name = DiskField.text
        field = nil
        value = { entity in .text(SearchWords(texts.map { entity[keyPath: $0] }).text) }
    }

    /// The words of texts, which `EntityQuery.matching` searches: at most one such index for a type. Of each text the first 4,096 characters are searched.
    public static func text(_ fields: any KeyPath<Entity, String> & Sendable...) -> Self { Self(texts: fields) }

    var isText: Bool { name == DiskField.text }
}

extension CacheEntity {
    var indexedFields: [DiskField] { Self.indices.map { DiskField($0.name, $0.value(self)) } }
}
