public import LarderBackend

/// The initial contents of a world.
public enum WorldSource: Sendable, Hashable {
    /// The files in a directory.
    case fixtures(directory: String)
    /// Generated contents: equal sizes give equal contents.
    case generated(WorldSize, picturesFrom: String?)
    /// No people and no data.
    case empty
}
