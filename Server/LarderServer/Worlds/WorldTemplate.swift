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
        let images = try source.images()
        var cache: TemplateCache?
        if case .fixtures(let directory) = source { cache = TemplateCache(fixtures: directory) }
        if let image = cache?.load() { return WorldTemplate(image: image, images: images) }
        var contents = try source.contents(images)
        if case .empty = source, case .collections = main { contents = try main.contents(.empty)?.withoutDocuments }
        let database = try Database(.memory)
        try WorldSchema.migrations.run(on: database)
        if let contents { try WorldSeeder.fill(database, with: contents) }
        let image = try database.image()
        cache?.store(image)
        return WorldTemplate(image: image, images: images)
    }
}

extension WorldSource {
    func images() throws -> ImageCatalogue {
        switch self {
        case .fixtures(let directory), .generated(_, let directory?): try FixtureReader.images(directory)
        case .generated, .collections, .empty: .empty
        }
    }

    /// Nil for an empty world.
    func contents(_ images: ImageCatalogue) throws -> WorldContents? {
        switch self {
        case .fixtures(let directory): try FixtureReader.read(directory)
        case .generated(let size, _): WorldGenerator.generate(size, images: images)
        case .collections(let directory): try CollectionReader.read(directory)
        case .empty: nil
        }
    }
}
