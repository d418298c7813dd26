import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderTime

/// Makes a world: opens its database, brings the schema up to date, and fills it if it is new.
package enum WorldFactory {
    package static func make(_ source: WorldSource, _ configuration: MockBackend.Configuration) throws -> World {
        var system = SystemRandomNumberGenerator()
        let seed = configuration.seed ?? system.next()
        let location: Database.Location = configuration.databasePath.map { .file($0) } ?? .memory
        let images: ImageCatalogue
        let isNew: Bool
        do {
            var options = Database.Options()
            options.durability = configuration.durability
            let database = try Database(location, options)
            try WorldSchema.migrations.run(on: database)
            isNew = try database.integer("SELECT count(*) FROM meta") == 0
            var contents: WorldContents?
            switch source {
            case .fixtures(let directory):
                contents = isNew ? try FixtureReader.read(directory) : nil
                images = try contents?.images ?? FixtureReader.images(directory)
            case .generated(let numbers, let directory):
                images = try directory.map { try FixtureReader.images($0) } ?? .empty
                contents = isNew ? WorldGenerator.generate(numbers, images: images) : nil
            case .empty:
                images = .empty
            }
            if let contents { try WorldSeeder.seed(contents, into: try Store(database, instance: seed)) }
            return try World(
                name: "main",
                database: database,
                images: images,
                clock: configuration.server.wall,
                seed: seed,
                settings: configuration.settings
            )
        }
    }
}
