/// What answers the requests of a server.
enum RequestOrigin: Sendable {
    /// The demo backend.
    case domain
    case proxy(ProxyOrigin)
    case recording(RecordedReplies)
}

extension RequestOriginChoice {
    /// - Throws: if the server has no address, or the recording cannot be read.
    func make(_ settings: ProxySettings, announce: (@Sendable (String) -> Void)?) throws -> RequestOrigin {
        switch self {
        case .domain: .domain
        case .server(let url): .proxy(try ProxyOrigin(url, settings, announce: announce))
        case .recording(let archive):
            .recording(try RecordedReplies(archive, readsWorldPaths: settings.readsWorldPaths))
        }
    }
}
