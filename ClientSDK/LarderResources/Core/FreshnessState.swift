import LarderStorage

/// The facts about a node's value that its freshness depends on.
///
/// Separate from the value and not generic: a memory hit judges freshness first and then copies the value alone. Code
/// that is generic over a user's type is several times slower if it is not specialised.
struct FreshnessState: Sendable {
    var facts: FreshnessFacts
    /// How complete the value is; for a value made of entities, as complete as they are.
    var held: DiskEntity.Completeness
    /// The node's count of changes at which these facts were determined.
    var changes: UInt64
}
