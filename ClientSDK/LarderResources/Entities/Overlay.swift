import LarderStorage

/// A change that is pending here, and that is shown over whatever the server says until the server has it.
struct Overlay: Sendable {
    /// The operation that the change belongs to.
    let operation: Int64
    /// Changes the entity; nil stays nil where the change is not a creation.
    let apply: @Sendable ((any Sendable)?) -> (any Sendable)?
    /// Once the operation is acknowledged: the version from which on the server's value holds the change. Until it is seen, the
    /// change goes on being shown, however stale the replica that answers is.
    var endsAtVersion: Int64?
}

/// A change to a list that is pending here.
struct QueryOverlay: Sendable {
    /// The operation that the change belongs to.
    let operation: Int64
    /// Changes which entities the list names.
    let apply: @Sendable (inout [EntityKey]) -> Void
}
