import LarderBackend
import LarderCoding
import LarderHTTP

/// A recording as one file: every request and the reply to it.
struct RecordingFile: Sendable {
    /// Whether no exchange is missing because the recording was full.
    let isComplete: Bool
    let steps: [RecordedExchange]

    private static let format = "larder-recording-2"

    /// The file. It contains users' tokens as they were sent.
    ///
    /// - Throws: if nothing is recorded.
    static func document(of recording: Recording) throws(Problem) -> JSONValue {
        guard let (entries, isFull) = recording.contents else {
            throw ProblemType.invalidParameter(
                "Nothing is recorded. Start a recording first: larder-server recording start, or POST {\"record\": true}."
            )
        }
        return .members([
            "format": .string(format), "server": .string(serverVersion), "isComplete": .bool(!isFull),
            "exchanges": .array(
                entries.map { entry in
                    .members([
                        "ending": .string(entry.ending), "request": .string(Base64.encode(entry.request)),
                        "reply": .string(Base64.encode(entry.reply)),
                    ])
                }
            ),
        ])
    }

    /// Reads a file.
    ///
    /// - Throws: a `Problem` with the reason.
    init(_ json: [UInt8]) throws {
        let errors = BodyErrors()
        guard case .object(let object) = try JSONParser.parse(json) else {
            throw ProblemType.invalidParameter("The file is not a JSON object.")
        }
        let reader = BodyReader(object, errors)
        guard reader.string("format") == Self.format else {
            throw ProblemType.invalidParameter(
                "The file's format is not \(Self.format). Recordings of other server versions cannot be played; record again."
            )
        }
        _ = reader.string("server")
        isComplete = reader.bool("isComplete")
        var steps: [RecordedExchange] = []
        // The number is not limited: a recording is bounded by bytes.
        for child in reader.objects("exchanges", count: 0...Int.max) ?? [] {
            let (request, reply) = (Self.bytes(child.value("request")), Self.bytes(child.value("reply")))
            guard let request, let reply else {
                child.fail("request", "and `reply` must be Base64")
                continue
            }
            let ending = child.string("ending", length: 0...32) ?? ""
            steps.append(RecordedExchange(request: request, reply: reply, ending: ending))
        }
        self.steps = steps
        try errors.check()
    }

    private static func bytes(_ value: JSONValue?) -> [UInt8]? {
        value?.string.flatMap { Base64.decode($0) }
    }
}
