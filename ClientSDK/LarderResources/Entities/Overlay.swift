import LarderStorage

/// A pending local change of an entity. It is shown over the server's value until the server has applied it.
struct Overlay: Sendable {
    /// The operation that the change belongs to.
    let operation: Int64
    /// Applies the change. Nil stays nil unless the change creates the entity.
    let apply: @Sendable ((any Sendable)?) -> (any Sendable)?
}

/// A pending local change of a list.
struct QueryOverlay: Sendable {
    /// The operation that the change belongs to.
    let operation: Int64
    /// Changes the keys of the list.
    let apply: @Sendable (inout [EntityKey]) -> Void
}
