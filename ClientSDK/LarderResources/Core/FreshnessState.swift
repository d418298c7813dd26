import LarderStorage

/// What is known of a node's value besides the value: enough to judge it by.
///
/// It is apart, and of no generic type, because a read that memory answers judges first and copies the value alone: what is
/// generic over a user's type is several times as slow where the compiler does not know that type.
struct FreshnessState: Sendable {
    var facts: FreshnessFacts
    /// How much of what it could hold the value holds.
    var held: DiskEntity.Completeness
    /// The change to what the value is made of up to which this holds.
    var changes: UInt64
}
