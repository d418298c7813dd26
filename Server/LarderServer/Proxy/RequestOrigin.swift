import LarderBackend
import LarderEngine
package import LarderHTTP
package import LarderTLS

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
    case server(HTTPURL)
    /// The replies of a recording: the text of its file.
    case recording([UInt8])

    /// - Throws: if the server has no address, or the recording cannot be read.
    func make(_ settings: ProxySettings, announce: (@Sendable (String) -> Void)?) throws -> RequestOrigin {
        switch self {
        case .domain: .domain
        case .server(let url): .proxy(try ProxyOrigin(url, settings, announce: announce))
        case .recording(let json):
            .recording(RecordedReplies(try RecordingFile(json), readsWorldPaths: settings.readsWorldPaths))
        }
    }
}

/// The settings of a server that stands before another one, or before a recording.
package struct ProxySettings: Sendable {
    /// Whether a path below `/w/` names a world. If not, such paths are those of the other server.
    package var readsWorldPaths = true
    /// Further host names that requests may have.
    package var allowedHosts: Set<String> = []
    /// The maximum size of all bodies in memory: of requests until they are answered, and of replies until they are written.
    package var bodyBytesMaximum = 512 << 20
    /// How a server with https is checked.
    package var tls = TLSSettings()

    package init() {}
}
