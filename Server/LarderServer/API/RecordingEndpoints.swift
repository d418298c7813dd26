import LarderCoding
import LarderEngine
import LarderHTTP

/// Recordings over HTTP: `POST {"record": true}` starts one, `GET` returns the archive, `DELETE` stops it.
enum RecordingEndpoints {
    static func answer(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        let recording = call.world.control.recording
        switch method {
        case .get:
            guard let document = recording.document else {
                throw ProblemType.invalidParameter(
                    "Nothing is recorded. Start a recording first: larder-server recording start, or POST {\"record\": true}."
                )
            }
            return .json(.ok, document)
        case .post:
            let reader = try call.settings()
            if !reader.bool("record") { reader.failMissing("record", "must be true") }
            try reader.check()
            let discarded = recording.start()
            let said = discarded > 0 ? JSONValue.int(discarded) : nil
            return ControlEndpoints.json(
                .members(["recording": .bool(true), "discardedExchanges": said]),
                status: .created
            )
        case .delete:
            recording.stop()
            return ControlEndpoints.done
        default: throw ControlEndpoints.wrongMethod("GET, POST, DELETE")
        }
    }
}
