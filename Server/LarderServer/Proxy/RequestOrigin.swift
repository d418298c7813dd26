import LarderBackend
import LarderEngine
package import LarderHTTP

/// What answers the requests of a server.
enum RequestOrigin: Sendable {
    /// The demo backend.
    case domain
    case proxy(ProxyOrigin)
    case recording(RecordedReplies)
}

/// What `MockBackend.start` shall put behind faults, gates and journal.
package enum RequestOriginChoice: Sendable {
    case domain
    /// Another server.
    case server(HTTPURL)
    /// The replies of a recording: the text of its file.
    case recording([UInt8])

    /// - Throws: if the server has no address, or the recording cannot be read.
    func make() throws -> RequestOrigin {
        switch self {
        case .domain: .domain
        case .server(let url): .proxy(try ProxyOrigin(url))
        case .recording(let json): .recording(RecordedReplies(try RecordingFile(json)))
        }
    }
}
