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
