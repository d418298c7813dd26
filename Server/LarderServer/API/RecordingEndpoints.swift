import LarderCoding
import LarderEngine
import LarderHTTP

/// Recordings over HTTP.
enum RecordingEndpoints {
    static let routes = [
        ControlRoute.later(.get, "/recording", read), .later(.post, "/recording", start),
        .later(.delete, "/recording") { call in
            call.world.control.recording.stop()
            return .noContent
        },
    ]

    /// The archive.
    private static func read(_ call: ControlCall) throws(Problem) -> Reply? {
        guard let document = call.world.control.recording.document else {
            throw ProblemType.invalidParameter(
                "Nothing is recorded. Start a recording first: larder-server recording start, or POST {\"record\": true}."
            )
        }
        return .json(.ok, document)
    }

    private static func start(_ call: ControlCall) throws(Problem) -> Reply? {
        let reader = try call.settings()
        if !reader.bool("record") { reader.failMissing("record", "must be true") }
        try reader.check()
        let discarded = call.world.control.recording.start()
        let told = discarded > 0 ? JSONValue.int(discarded) : nil
        return .control(.members(["recording": .bool(true), "discardedExchanges": told]), status: .created)
    }
}
