import LarderCoding

/// The names that collections cannot have, and the text of the 404 for a collection that does not exist.
enum CollectionNames {
    /// The first segments of the server's own paths, which no collection can have as its name.
    static let reserved: Set<String> = ["changes", "live", "problems", "healthz", "w", "echo"]

    /// The detail of the 404: the name, and the most similar name of a collection if there is one.
    ///
    /// - Parameter route: the most similar custom route.
    static func reasonMissing(_ name: String, in world: World, or route: String? = nil) -> String {
        let nearest = NearestName.similar(to: name, in: world.collections).first.map { "/\($0)" } ?? route
        let suggestion = nearest.map { " Did you mean \($0)?" } ?? ""
        return "There is no collection '\(name.prefix(64))'.\(suggestion) GET / lists all."
    }
}
