import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP

/// Recordings over HTTP: `POST {"record": true}` starts one, `GET` returns the file, `DELETE` stops it.
enum RecordingEndpoints {
    static func answer(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        let recording = call.world.control.recording
        switch method {
        case .get: return ControlEndpoints.json(try RecordingFile.document(of: recording))
        case .post:
            let reader = try call.settings()
            if !reader.bool("record") { reader.failMissing("record", "must be true") }
            try reader.check()
            recording.start()
            return ControlEndpoints.json(.members(["recording": .bool(true)]), status: .created)
        case .delete:
            recording.stop()
            return ControlEndpoints.done
        default: throw ControlEndpoints.wrongMethod("GET, POST, DELETE")
        }
    }
}
