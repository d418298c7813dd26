import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderTime

/// A recording as one file: the initial state, the seed, the initial faults and settings, and every byte received and sent.
struct RecordingFile: Sendable {
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
    /// The seed of the secrets that are issued during the recording.
    let secretSeed: UInt64
    let time: WallTime
    /// Whether no exchange is missing because the recording was full.
    let isComplete: Bool
    let snapshot: [UInt8]
    let faults: [Fault]
    let dialect: Dialect
    let drift: SchemaDrift?
    let skews: [String: Duration]
    let steps: [Step]

    static let format = "larder-recording-1"

    /// The file. It contains users' tokens as they were sent, because a replay needs them.
    static func document(of world: World) throws(Problem) -> JSONValue {
        guard let recording = world.control.recording.contents else {
            throw ProblemType.invalidParameter(
                "Nothing is recorded. Start a recording with POST {\"record\": true} first."
            )
        }
        let snapshot: [UInt8]
        do { snapshot = try recording.beginning.image.bytes() } catch {
            throw ProblemType.storageUnavailable("The snapshot cannot be read: \(error)")
        }
        let settings = recording.beginning.settings
        let skews = settings.skews.sorted { $0.key < $1.key }
        return .members([
            "format": .string(format), "server": .string(serverVersion), "world": .string(world.id),
            "seed": .string(String(world.seed)), "secretSeed": .string(String(recording.beginning.secretSeed)),
            "timeNanoseconds": .integer(recording.beginning.time.nanosecondsSinceEpoch),
            "isComplete": .bool(!recording.isFull), "faults": .array(recording.beginning.faults.map(\.json)),
            "dialect": .members([
                "idempotency": .string(settings.dialect.idempotency.rawValue),
                "rateLimit": .string(settings.dialect.rateLimit.rawValue),
                "resync": .string(settings.dialect.resync.rawValue),
            ]),
            "drift": settings.drift?.json,
            "skews": .object(JSONObject(skews.map { .init(name: $0.key, value: .seconds($0.value)) })),
            "snapshot": .string(Base64.encode(snapshot)),
            "exchanges": .array(
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
    /// - Throws: a `Problem` with the reason.
    init(_ json: [UInt8]) throws {
        let errors = SettingsErrors()
        guard case .object(let object) = try JSONParser.parse(json) else {
            throw ProblemType.invalidParameter("The file is not a JSON object.")
        }
        var reader = SettingsReader(object, errors)
        guard reader.string("format") == Self.format else {
            throw ProblemType.invalidParameter(
                "The file's format is not \(Self.format). Recordings of other server versions cannot be replayed; record again."
            )
        }
        _ = reader.string("server")
        isComplete = reader.bool("isComplete")
        world = reader.string("world", length: 1...64) ?? World.mainID
        seed = reader.string("seed").flatMap { UInt64($0) } ?? 0
        secretSeed = reader.string("secretSeed").flatMap { UInt64($0) } ?? 0
        time = WallTime(nanosecondsSinceEpoch: reader.value("timeNanoseconds")?.integer ?? 0)
        snapshot = Self.bytes(reader.value("snapshot")) ?? []
        if snapshot.isEmpty { reader.fail("snapshot", "must be a Base64-encoded database") }
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
        skews = reader.child("skews")?.durations() ?? [:]
        var steps: [Step] = []
        // The number is not limited: a recording is bounded by bytes.
        for var child in reader.objects("exchanges", countMaximum: .max) ?? [] {
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

/// Recordings over HTTP: `POST {"record": true}` starts one, `GET` returns the file, `DELETE` stops it.
enum RecordingEndpoints {
    static func answer(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        switch method {
        case .get:
            let document = try RecordingFile.document(of: call.world)
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
            call.world.control.recording.stop()
            return ControlEndpoints.done
        default: throw ControlEndpoints.wrongMethod("GET, POST, DELETE")
        }
    }
}

extension ControlPlane {
    /// Starts a recording. Fault counters and connection numbers restart, as if the world had just been made with this state
    /// and these faults.
    ///
    /// - Parameter secretSeed: a new random number for a recording; the recording's own for a replay.
    func record(_ world: World, secretSeed: UInt64) throws(Problem) {
        let image = try world.image()
        world.control.faults.restart(now: world.clock.uptime)
        world.control.connections.clear()
        world.control.recording.start(
            Recording.Beginning(
                image: image,
                secretSeed: secretSeed,
                time: world.clock.now,
                uptime: world.clock.uptime,
                faults: world.control.faults.all.map(\.fault),
                settings: world.control.current
            )
        )
    }
}
