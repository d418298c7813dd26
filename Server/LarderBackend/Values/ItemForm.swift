/// How the items of a list are written.
enum ItemForm: Sendable {
    case whole
    /// Identifiers and versions only: `{"id":"post_1","version":3}`.
    case index
}
