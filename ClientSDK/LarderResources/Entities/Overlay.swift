import LarderStorage

/// A pending local change of an entity. It is shown over the server's value until the server has applied it.
struct Overlay: Sendable {
    /// The operation that the change belongs to.
    let operation: Int64
    /// Applies the change. Nil stays nil unless the change creates the entity.
    let apply: @Sendable ((any Sendable)?) -> (any Sendable)?
    /// Set when the operation is acknowledged: the first version of the server's value that contains the change. The
    /// change is shown until that version is seen, so that a lagging replica does not undo it.
    var endsAtVersion: Int64?
}

/// A pending local change of a list.
struct QueryOverlay: Sendable {
    /// The operation that the change belongs to.
    let operation: Int64
    /// Changes the keys of the list.
    let apply: @Sendable (inout [EntityKey]) -> Void
}
