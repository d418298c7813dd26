/// What is said about paths that the API of a world does not have.
enum CollectionNames {
    /// The first segments of the server's own paths, which no collection can have as its name.
    static let reserved: Set<String> = ["changes", "live", "problems", "healthz", "w", "echo"]

    /// That there is no such collection, with the name that was probably meant.
    static func reasonMissing(_ name: String, in world: World) -> String {
        let nearest = NearestName.nearest(to: name, in: world.collections)
        let suggestion = nearest.map { " Did you mean /\($0)?" } ?? ""
        return "There is no collection '\(name.prefix(64))'.\(suggestion) GET / lists all."
    }
}
