import LarderCoding
import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderTime

/// A recorded run as one file: the state that it began with, the seed, what was set, and every byte asked and answered.
struct Repro: Sendable {
    struct Step: Sendable {
        let at: Duration
        let connection: Int
        let request: [UInt8]
        let reply: [UInt8]
        let ending: String
        let faults: [String]
    }

    let world: String
    let seed: UInt64
    /// What the secrets are made from that are issued in the run.
    let secretSeed: UInt64
    let time: WallTime
    let snapshot: [UInt8]
    let faults: [Fault]
    let dialect: Dialect
    let drift: SchemaDrift?
    let skews: [String: Duration]
    let steps: [Step]

    static let format = "larder-repro-2"

    /// The file. Tokens of users stand in it as they were sent: it repeats the run, and so it must know them.
    static func document(of world: World) throws(Problem) -> JSONValue {
        guard let recording = world.control.tape.recording else {
            throw ProblemType.invalidParameter("Nothing is recorded; POST {\"record\": true} first.")
        }
        let snapshot: [UInt8]
        do { snapshot = try recording.beginning.image.bytes() } catch {
            throw ProblemType.storageUnavailable("The snapshot cannot be read: \(error)")
        }
        let settings = world.control.current
        let skews = settings.skews.sorted { $0.key < $1.key }
        return .members([
            "format": .string(format), "server": .string(MockBackend.version), "world": .string(world.id),
            "seed": .string(String(world.seed)), "secretSeed": .string(String(recording.beginning.secretSeed)),
            "timeNanoseconds": .integer(recording.beginning.time.nanosecondsSinceEpoch),
            "isComplete": .bool(!recording.isFull), "faults": .array(world.control.faults.all.map(\.fault.json)),
            "dialect": .members([
                "idempotency": .string(settings.dialect.idempotency.rawValue),
                "rateLimit": .string(settings.dialect.rateLimit.rawValue),
                "resync": .string(settings.dialect.resync.rawValue),
            ]),
            "drift": settings.drift?.json,
            "skews": .object(JSONObject(skews.map { .init(name: $0.key, value: .seconds($0.value)) })),
            "snapshot": .string(Base64.encode(snapshot)),
            "tape": .array(
                recording.entries.map { entry in
                    .members([
                        "atNanoseconds": .integer(entry.at.nanosecondsSaturating),
                        "connection": .integer(Int64(entry.connection)), "ending": .string(entry.ending),
                        "faults": .array(entry.faults.map { .string($0) }),
                        "request": .string(Base64.encode(entry.request)), "reply": .string(Base64.encode(entry.reply)),
                    ])
                }
            ),
        ])
    }

    /// Reads a file.
    ///
    /// - Throws: a `Problem` that names what is wrong with it.
    init(_ json: [UInt8]) throws {
        let errors = SettingsErrors()
        guard case .object(let object) = try JSONParser.parse(json) else {
            throw ProblemType.invalidParameter("The file is not a JSON object.")
        }
        var reader = SettingsReader(object, errors)
        guard reader.string("format") == Self.format else {
            throw ProblemType.invalidParameter(
                "The file is no \(Self.format). A recording of another version of the server cannot be replayed: record it again."
            )
        }
        _ = (reader.string("server"), reader.bool("isComplete"))
        world = reader.string("world", length: 1...64) ?? World.mainID
        seed = reader.string("seed").flatMap { UInt64($0) } ?? 0
        secretSeed = reader.string("secretSeed").flatMap { UInt64($0) } ?? 0
        time = WallTime(nanosecondsSinceEpoch: reader.value("timeNanoseconds")?.integer ?? 0)
        snapshot = Self.bytes(reader.value("snapshot")) ?? []
        if snapshot.isEmpty { reader.fail("snapshot", "must be a database in Base64") }
        var faults: [Fault] = []
        for var child in reader.objects("faults") ?? [] {
            if let fault = Fault.read(&child) { faults.append(fault) }
        }
        self.faults = faults
        var dialect = Dialect()
        if var child = reader.child("dialect") {
            dialect.idempotency = child.choice("idempotency", Dialect.Idempotency.self) ?? .ietf
            dialect.rateLimit = child.choice("rateLimit", Dialect.RateLimitFields.self) ?? .ietf
            dialect.resync = child.choice("resync", Dialect.Resync.self) ?? .wipe
            child.finish()
        }
        self.dialect = dialect
        var drift: SchemaDrift?
        if var child = reader.child("drift") { drift = SchemaDrift.read(&child) }
        self.drift = drift
        var skews: [String: Duration] = [:]
        for member in reader.child("skews")?.object.members ?? [] {
            skews[member.name] = member.value.double.map { .seconds($0) }
        }
        self.skews = skews
        var steps: [Step] = []
        // As many as a tape can hold: it is bounded by bytes.
        for var child in reader.objects("tape", countMaximum: .max) ?? [] {
            let (request, reply) = (Self.bytes(child.value("request")), Self.bytes(child.value("reply")))
            guard let request, let reply else {
                child.fail("request", "and `reply` must be Base64")
                continue
            }
            steps.append(
                Step(
                    at: .nanoseconds(child.value("atNanoseconds")?.integer ?? 0),
                    connection: child.integer("connection", in: 1...Int(Int32.max)) ?? 1,
                    request: request,
                    reply: reply,
                    ending: child.string("ending", length: 0...32) ?? "",
                    faults: (child.array("faults") ?? []).compactMap { $0.value.string }
                )
            )
        }
        self.steps = steps
        try errors.check()
    }

    private static func bytes(_ value: JSONValue?) -> [UInt8]? {
        value?.string.flatMap { Base64.decode($0) }
    }
}

/// Recording, over HTTP: `POST {"record": true}` begins, `GET` gives the file, `DELETE` ends.
enum ReproEndpoints {
    static func answer(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        switch method {
        case .get:
            let document = try Repro.document(of: call.world)
            return ControlEndpoints.json(document)
        case .post:
            var (reader, errors) = try call.settings()
            if !reader.bool("record") { reader.failMissing("record", "must be true") }
            reader.finish()
            try errors.check()
            var system = SystemRandomNumberGenerator()
            try call.plane.record(call.world, secretSeed: system.next())
            return ControlEndpoints.json(.members(["recording": .bool(true)]), status: .created)
        case .delete:
            call.world.control.tape.stop()
            return ControlEndpoints.done
        default: throw ControlEndpoints.wrongMethod("GET, POST, DELETE")
        }
    }
}

extension ControlPlane {
    /// Begins to record a world: from here on everything is as if it had just been made with this state and these faults.
    ///
    /// - Parameter secretSeed: a fresh random number for a recording, and the recording's for a replay.
    func record(_ world: World, secretSeed: UInt64) throws(Problem) {
        let image = try world.image()
        world.control.faults.restart(now: world.clock.uptime)
        world.control.roster.clear()
        world.control.tape.start(
            Tape.Beginning(
                image: image,
                secretSeed: secretSeed,
                time: world.clock.now,
                uptime: world.clock.uptime
            )
        )
    }
}
