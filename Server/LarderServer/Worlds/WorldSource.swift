/// The initial contents of a world.
public enum WorldSource: Sendable, Hashable {
    /// The files in a directory.
    case fixtures(directory: String)
    /// Generated contents: equal sizes give equal contents.
    case generated(WorldSize, picturesFrom: String?)
    /// Your own JSON collections: the files `NAME.json` or the file `db.json` in a directory. The world serves them instead of the
    /// demo API.
    case collections(directory: String)
    /// No people and no data.
    case empty
}
