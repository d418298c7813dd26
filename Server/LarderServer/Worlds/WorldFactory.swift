import LarderBackend
import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderTime

/// Makes the world `main`.
enum WorldFactory {
    /// - Returns: the world, and the template that it started from if it is in memory.
    static func makeMain(
        _ source: WorldSource,
        _ options: WorldOptions
    ) throws -> (World, WorldTemplate?) {
        var system = SystemRandomNumberGenerator()
        let seed = options.seed ?? system.next()
        let clock = WorldClock(wall: options.wall, monotonic: options.monotonic)
        guard let path = options.databasePath else {
            let template = try WorldTemplate.make(source)
            let world = try World(
                id: World.mainID,
                image: template.image,
                images: template.images,
                clock: clock,
                seed: seed,
                settings: options.settings,
                hooks: options.makeControl(seed: seed)
            )
            return (world, template)
        }
        let (database, images) = try open(path, source, options, instance: system.next())
        let world = try World(
            id: World.mainID,
            database: database,
            images: images,
            clock: clock,
            seed: seed,
            settings: options.settings,
            hooks: options.makeControl(seed: seed),
            outlivesProcess: true
        )
        return (world, nil)
    }

    /// Opens a database file, migrates its schema, and fills it if it is new.
    private static func open(
        _ path: String,
        _ source: WorldSource,
        _ world: WorldOptions,
        instance: UInt64
    ) throws -> sending (Database, ImageCatalogue) {
        var options = Database.Options()
        options.durability = world.durability
        let database = try Database(.file(path), options)
        try WorldSchema.migrations.run(on: database)
        let isNew = try database.integer("SELECT count(*) FROM meta") == 0
        if case .collections = source {
            guard try isNew || database.integer("SELECT count(*) FROM collections") > 0 else {
                throw FileError("\(path) holds the demo backend's data and not collections: choose another file")
            }
        }
        let images = try source.images()
        let contents = isNew ? try source.contents(images) : nil
        if let contents { try WorldSeeder.fill(database, with: contents, instance: instance) }
        return (database, images)
    }
}
