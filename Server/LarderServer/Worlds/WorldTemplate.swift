import LarderBackend
import LarderCoding
import LarderSQLite
import LarderTime

/// The initial state of worlds: a filled database that they share until they change it. Immutable.
struct WorldTemplate: Sendable {
    let image: DatabaseImage
    let images: ImageCatalogue

    /// Builds the template of a source, or loads it from the cache.
    ///
    /// - Parameter main: the source of the server's first world: an empty world beside collections has the same collections.
    static func make(_ source: WorldSource, besides main: WorldSource = .empty) throws -> WorldTemplate {
        switch source {
        case .empty:
            if case .collections(let directory) = main {
                let contents = try CollectionReader.read(directory).withoutDocuments
                return WorldTemplate(image: try filled(contents, instance: 0), images: .empty)
            }
            return WorldTemplate(image: try filled(nil, instance: 0), images: .empty)
        case .collections(let directory):
            let contents = try CollectionReader.read(directory)
            // Other contents are another history: no token of it is valid.
            return WorldTemplate(image: try filled(contents, instance: contents.fingerprint), images: .empty)
        case .generated(let size, let directory):
            let images = try directory.map { try FixtureReader.images($0) } ?? .empty
            let contents = WorldGenerator.generate(size, images: images)
            return WorldTemplate(image: try filled(contents, instance: size.seed), images: images)
        case .fixtures(let directory):
            let cache = TemplateCache(fixtures: directory)
            let images = try FixtureReader.images(directory)
            if let image = cache?.load() { return WorldTemplate(image: image, images: images) }
            let contents = try FixtureReader.read(directory)
            let image = try filled(contents, instance: 1)
            cache?.store(image)
            return WorldTemplate(image: image, images: images)
        }
    }

    private static func filled(_ contents: WorldContents?, instance: UInt64) throws -> DatabaseImage {
        let database = try Database(.memory)
        try WorldSchema.migrations.run(on: database)
        try WorldSeeder.fill(database, with: contents, instance: instance)
        return try database.image()
    }
}
