import LarderCoding
import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderTime
import Synchronization

/// The worlds of a server. Safe from any thread.
///
/// A world starts as a copy-on-write view of a template, so that making, forking and resetting one only copies changed pages.
final class WorldRegistry: Sendable {
    /// A state that can be restored.
    struct Snapshot: Sendable {
        let image: DatabaseImage
        let time: WallTime
    }

    struct Entry {
        let world: World
        /// The initial state, for a reset; nil for a world in a database file.
        var origin: DatabaseImage?
        var snapshots: [String: Snapshot] = [:]
        /// After how long without a request the world is removed; nil for never.
        var idleLimit: Duration?
        /// When a request has addressed the world last, on the server's clock.
        var lastUse = MonotonicTime(nanoseconds: 0)

        func isExpired(at now: MonotonicTime) -> Bool { idleLimit.map { now - lastUse >= $0 } ?? false }
    }

    struct State {
        var entries: [String: Entry] = [:]
        /// The names of worlds that are being made. They count towards the limit.
        var reserved: Set<String> = []
        var lastNumber = 0
        /// How many worlds of each name were made.
        var made: [String: Int] = [:]
        var templates: [(source: WorldSource, template: WorldTemplate)] = []
        var loops: [EventLoop] = []
    }

    let main: World
    let options: BackendConfiguration
    private let mainSource: WorldSource
    private let seed: UInt64
    let state: Mutex<State>

    static let snapshotsMaximum = 64
    private static let templatesMaximum = 8
    private static let namesMaximum = 10_000

    /// Makes the world `main`.
    init(_ source: WorldSource, _ options: BackendConfiguration) throws {
        var kept = options
        // The archive of a recording would stay in memory beside what was read from it.
        kept.origin = .domain
        self.options = kept
        if let directory = options.snapshotsDirectory { try SourceFile.makeDirectory(directory) }
        mainSource = source
        var system = SystemRandomNumberGenerator()
        seed = options.seed ?? system.next()
        let clock = WorldClock(wall: options.server.wall, monotonic: options.server.monotonic)
        var state = State()
        if let path = options.databasePath {
            let (database, images) = try Self.open(path, source, options.durability, announce: options.announce)
            main = try World(
                id: World.mainID,
                database: database,
                images: images,
                clock: clock,
                seed: seed,
                settings: options.settings,
                hooks: WorldControl(seed: seed, journalCapacity: options.journalCapacity),
                instances: system
            )
            state.entries[World.mainID] = Entry(world: main)
        } else {
            let template = try WorldTemplate.make(source)
            main = try Self.inMemory(World.mainID, 1, template, clock, seed, options)
            state.entries[World.mainID] = Entry(world: main, origin: template.image)
            state.templates.append((source, template))
        }
        self.state = Mutex(state)
    }

    /// Opens a database file, migrates its schema, and fills it if it is new.
    private static func open(
        _ path: String,
        _ source: WorldSource,
        _ durability: Database.Durability,
        announce: (@Sendable (String) -> Void)?
    ) throws -> sending (Database, ImageCatalogue) {
        var options = Database.Options()
        options.durability = durability
        let database = try Database(.file(path), options)
        try WorldSchema.migrations.run(on: database)
        let isNew = try database.integer("SELECT count(*) FROM meta") == 0
        if case .collections(let directory) = source, !isNew {
            announce?("\(path) has the documents, and the files in \(directory) are not read")
        }
        if case .collections = source {
            guard try isNew || database.integer("SELECT count(*) FROM collections") > 0 else {
                throw FileError("\(path) holds the demo backend's data and not collections: choose another file")
            }
        }
        let images = try source.images()
        if isNew, let contents = try source.contents(images) { try WorldSeeder.fill(database, with: contents) }
        return (database, images)
    }

    /// Sets the loops of the server, which the worlds' clocks use; without any the server has stopped, and timers are removed.
    func attach(_ loops: [EventLoop]) {
        let worlds = state.withLock { state in
            state.loops = loops
            return state.entries.values.map(\.world)
        }
        for world in worlds {
            world.clock.drive(by: loops)
            if loops.isEmpty { world.clock.end() }
        }
    }

    // MARK: Finding

    /// The world that a request addresses; nil if there is none, or nobody has used it for longer than its limit.
    func find(_ id: String) -> World? {
        if id == World.mainID { return main }
        let now = options.server.monotonic.uptime
        let (world, isExpired) = state.withLock { state -> (World?, Bool) in
            guard let entry = state.entries[id] else { return (nil, false) }
            if entry.isExpired(at: now) { return (entry.world, true) }
            if entry.idleLimit != nil { state.entries[id]?.lastUse = now }
            return (entry.world, false)
        }
        guard let world, isExpired else { return world }
        remove(world)
        return nil
    }

    /// Removes the worlds that nobody has used for longer than their limits.
    private func removeExpired() {
        let now = options.server.monotonic.uptime
        let expired = state.withLock { state in state.entries.values.filter { $0.isExpired(at: now) }.map(\.world) }
        for world in expired { remove(world) }
    }

    /// The limit of a world without use; nil for none.
    func idleLimit(of id: String) -> Duration? { state.withLock { $0.entries[id]?.idleLimit } }

    /// The world, or a problem that lists similar names.
    func world(_ id: String) throws(Problem) -> World {
        guard let world = find(id) else { throw unknown(id) }
        return world
    }

    func unknown(_ id: String) -> Problem {
        let known = state.withLock { Array($0.entries.keys) }
        let nearest = NearestName.similar(to: id, in: known).prefix(5)
        var problem = ProblemType.unknownWorld("There is no world '\(id.prefix(64))'. GET /_larder/worlds lists them.")
        problem.extensions["nearest"] = .array(nearest.map { .string($0) })
        return problem
    }

    var all: [World] {
        removeExpired()
        return state.withLock { $0.entries.values.map(\.world) }.sorted { $0.id < $1.id }
    }

    // MARK: Making

    /// Makes a world.
    ///
    /// - Parameters:
    ///   - id: its name; nil to generate one.
    ///   - source: its contents; nil for the source of `main`.
    ///   - idleLimit: after how long without a request it is removed; nil for the server's setting.
    func create(
        id: String?,
        source: WorldSource?,
        seed: UInt64?,
        idleLimit: Duration? = nil
    ) throws(Problem) -> World {
        try add(id, template(of: source ?? mainSource), seed, like: nil, idleLimit)
    }

    /// Makes a world that starts from the present state and time of another.
    func fork(_ original: String, id: String?, seed: UInt64?, idleLimit: Duration? = nil) throws(Problem) -> World {
        let world = try world(original)
        let present = WorldTemplate(image: try world.image(), images: world.images)
        return try add(id, present, seed, like: world, idleLimit)
    }

    private func add(
        _ id: String?,
        _ template: WorldTemplate,
        _ seed: UInt64?,
        like original: World?,
        _ idleLimit: Duration?
    ) throws(Problem) -> World {
        // Those that nobody uses do not count towards the limit.
        removeExpired()
        let (name, number, loops) = try reserve(id)
        let clock = WorldClock(wall: options.server.wall, monotonic: options.server.monotonic)
        if let original, original.clock.mode != .real {
            clock.set(original.clock.mode, at: original.clock.now)
        }
        clock.drive(by: loops)
        // Without a seed of its own a world's randomness depends on its name and the server's seed, not on the order of
        // creation.
        let seed = seed ?? self.seed ^ ContentHash.hash64(Array(name.utf8).span)
        do {
            let world = try Self.inMemory(name, number, template, clock, seed, options)
            state.withLock { state in
                state.reserved.remove(name)
                var entry = Entry(world: world, origin: template.image)
                entry.idleLimit = idleLimit ?? options.worldIdleLimit
                entry.lastUse = options.server.monotonic.uptime
                state.entries[name] = entry
            }
            return world
        } catch {
            state.withLock { _ = $0.reserved.remove(name) }
            throw World.problem(error)
        }
    }

    /// A world in memory. Its history identities follow from the seed, so that two runs give the same change tokens, and differ from those
    /// of every other world, also of an earlier one with the name.
    ///
    /// - Parameter number: the how many-th world of this name it is.
    private static func inMemory(
        _ name: String,
        _ number: Int,
        _ template: WorldTemplate,
        _ clock: WorldClock,
        _ seed: UInt64,
        _ options: BackendConfiguration
    ) throws(SQLiteError) -> World {
        try World(
            id: name,
            database: World.database(template.image),
            isCopy: true,
            images: template.images,
            clock: clock,
            seed: seed,
            settings: options.settings,
            hooks: WorldControl(seed: seed, journalCapacity: options.journalCapacity),
            instances: SeededGenerator(seed: ContentHash.hash64(Array("\(name) \(number)".utf8).span, seed: seed))
        )
    }

    /// Reserves a name and a place until the world is added.
    ///
    /// - Returns: also the how many-th world of this name it is.
    private func reserve(_ id: String?) throws(Problem) -> (String, Int, [EventLoop]) {
        if let id { try Self.check(name: id, "id") }
        return try state.withLock { state throws(Problem) in
            guard state.entries.count + state.reserved.count < options.worldsMaximum else {
                throw ProblemType.limitReached(
                    "The limit of \(options.worldsMaximum) worlds is reached.",
                    limit: options.worldsMaximum
                )
            }
            func isTaken(_ name: String) -> Bool { state.entries[name] != nil || state.reserved.contains(name) }
            var name = id ?? ""
            if id == nil {
                repeat {
                    state.lastNumber += 1
                    name = "world-\(state.lastNumber)"
                } while isTaken(name)
            }
            guard !isTaken(name) else { throw ProblemType.nameTaken("A world '\(name)' already exists.") }
            state.reserved.insert(name)
            // Beyond the bound names share one count. No name is empty.
            let counted = state.made[name] != nil || state.made.count < Self.namesMaximum ? name : ""
            let number = (state.made[counted] ?? 0) + 1
            state.made[counted] = number
            return (name, number, state.loops)
        }
    }

    private func template(of source: WorldSource) throws(Problem) -> WorldTemplate {
        if let known = state.withLock({ state in state.templates.first { $0.source == source }?.template }) {
            return known
        }
        let template: WorldTemplate
        do { template = try WorldTemplate.make(source, besides: mainSource) } catch {
            throw ProblemType.invalidParameter("The world cannot be made: \(SQLiteError.summary(of: error))")
        }
        state.withLock { state in
            // The template of `main` stays: it is used most.
            if state.templates.count >= Self.templatesMaximum { state.templates.remove(at: 1) }
            state.templates.append((source, template))
        }
        return template
    }

    // MARK: Changing

    /// Returns a world to its initial state. Faults, gates and actors are removed, and scripts, delayed actions and delayed webhooks end;
    /// clock and journal stay.
    func reset(_ id: String) throws(Problem) {
        let (world, origin) = (try world(id), try origin(of: id))
        // Before the settings, which a step of a script could set again.
        world.clock.cancelPlans()
        world.control.reset()
        try world.replace(with: origin)
    }

    /// The initial state of a world.
    ///
    /// - Throws: for a world in a database file, whose state cannot be replaced: later writes would not be in the file.
    func origin(of id: String) throws(Problem) -> DatabaseImage {
        guard let origin = state.withLock({ $0.entries[id]?.origin }) else {
            throw ProblemType.invalidParameter(
                "A world in a database file cannot be reset or restored; stop the server and remove or replace the file."
            )
        }
        return origin
    }

    /// Reads the source of `main` again: it and later worlds begin with what is there now. Other worlds keep what they have.
    ///
    /// - Throws: if the source cannot be read, or the world is in a database file.
    func restart() throws {
        guard options.databasePath == nil else {
            throw FileError(
                "The documents are in \(options.databasePath ?? ""), and the files are not read; without that file the server begins with them again"
            )
        }
        let template = try WorldTemplate.make(mainSource)
        state.withLock { state in
            state.entries[World.mainID]?.origin = template.image
            state.templates.removeAll { $0.source == mainSource }
            state.templates.insert((mainSource, template), at: 0)
        }
        try main.replace(with: template.image)
    }

    func destroy(_ id: String) throws(Problem) {
        guard id != World.mainID else {
            throw ProblemType.invalidParameter("The world main cannot be destroyed; reset it.")
        }
        remove(try world(id))
    }

    private func remove(_ world: World) {
        let removed = state.withLock { state -> Bool in
            // Another thread may have removed it, and another world may have its name since.
            guard state.entries[world.id]?.world === world else { return false }
            state.entries[world.id] = nil
            return true
        }
        guard removed else { return }
        world.control.end()
        world.live.tell(.worldEnds)
        world.clock.end()
        // Afterwards: repeatable replies of the world become invalid, and further requests are told that it does not exist.
        world.invalidateReplies()
    }

    // MARK: Names

    static func check(name: String, _ member: String) throws(Problem) {
        let isFit =
            (1...64).contains(name.utf8.count) && name.utf8.first != UInt8(ascii: ".")
            && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) }
        guard isFit else {
            let detail = "must be 1 to 64 letters, digits, '-', '_' or '.', and must not begin with '.'"
            throw ProblemType.validationFailed("The name is invalid.", at: "/" + member, detail)
        }
    }
}
