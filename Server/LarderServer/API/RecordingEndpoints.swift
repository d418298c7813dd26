import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderTime

extension RecordingFile {
    /// The file. It contains users' tokens as they were sent, because a replay needs them.
    static func document(of world: World) throws(Problem) -> JSONValue {
        guard let recording = world.control.recording.contents else {
            throw ProblemType.invalidParameter(
                "Nothing is recorded. Start a recording first: larder-server recording start, or POST {\"record\": true}."
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
