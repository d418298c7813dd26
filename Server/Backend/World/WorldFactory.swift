import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderTime

/// Makes the world that a server serves on its plain paths.
enum WorldFactory {
    /// - Returns: the world, and the template that it began as if it lies in memory.
    static func makeMain(
        _ source: WorldSource,
        _ configuration: MockBackend.Configuration,
        _ headFaults: HeadFaultCount
    ) throws -> (World, WorldTemplate?) {
        var system = SystemRandomNumberGenerator()
        let seed = configuration.seed ?? system.next()
        let clock = WorldClock(wall: configuration.server.wall, monotonic: configuration.server.monotonic)
        guard let path = configuration.databasePath else {
            let template = try WorldTemplate.make(source)
            let world = try World(
                id: World.mainID,
                image: template.image,
                images: template.images,
                clock: clock,
                seed: seed,
                settings: configuration.settings,
                headFaults: headFaults
            )
            return (world, template)
        }
        let (database, images) = try open(path, source, configuration, instance: system.next())
        let world = try World(
            id: World.mainID,
            database: database,
            images: images,
            clock: clock,
            seed: seed,
            settings: configuration.settings,
            headFaults: headFaults,
            outlivesProcess: true
        )
        return (world, nil)
    }

    /// Opens a database file, brings its schema up to date, and fills it if it is new.
    private static func open(
        _ path: String,
        _ source: WorldSource,
        _ configuration: MockBackend.Configuration,
        instance: UInt64
    ) throws -> sending (Database, ImageCatalogue) {
        var options = Database.Options()
        options.durability = configuration.durability
        let database = try Database(.file(path), options)
        try WorldSchema.migrations.run(on: database)
        let isNew = try database.integer("SELECT count(*) FROM meta") == 0
        var contents: WorldContents?
        let images: ImageCatalogue
        switch source {
        case .fixtures(let directory):
            contents = isNew ? try FixtureReader.read(directory) : nil
            images = try contents?.images ?? FixtureReader.images(directory)
        case .generated(let numbers, let directory):
            images = try directory.map { try FixtureReader.images($0) } ?? .empty
            contents = isNew ? WorldGenerator.generate(numbers, images: images) : nil
        case .empty: images = .empty
        }
        if let contents { try WorldSeeder.seed(contents, into: try Store(database, instance: instance)) }
        return (database, images)
    }
}
