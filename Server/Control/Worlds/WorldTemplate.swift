import LarderCoding
import LarderSQLite
import LarderTime

/// What worlds begin as: a filled database that all of them share until they change it. Immutable.
struct WorldTemplate: Sendable {
    let image: DatabaseImage
    let images: ImageCatalogue

    /// Builds the template of a source, or takes it from where an earlier start has put it.
    static func make(_ source: WorldSource) throws -> WorldTemplate {
        switch source {
        case .empty: return WorldTemplate(image: try filled(nil, instance: 0), images: .empty)
        case .generated(let numbers, let directory):
            let images = try directory.map { try FixtureReader.images($0) } ?? .empty
            let contents = WorldGenerator.generate(numbers, images: images)
            return WorldTemplate(image: try filled(contents, instance: numbers.seed), images: images)
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
        let store = try Store(database, instance: instance)
        if let contents { try WorldSeeder.seed(contents, into: store) }
        return try database.image()
    }
}
