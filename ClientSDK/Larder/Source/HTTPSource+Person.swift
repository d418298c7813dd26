import LarderTransport

extension HTTPSource {
    /// The same source, whose requests are those of a person: a `HostGate` does not hold them.
    var userInitiated: HTTPSource {
        var source = HTTPSource(
            base,
            transport: UserInitiatedTransport(base: transport),
            authorizer: authorizer,
            configuration: configuration,
            mayUseNetwork: mayUseNetwork
        )
        source.wallClock = wallClock
        return source
    }
}

/// Marks requests as those of a person.
private struct UserInitiatedTransport: Transport {
    let base: any Transport

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try await base.send(Self.marked(request))
    }

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try await base.open(Self.marked(request))
    }

    private static func marked(_ request: TransportRequest) -> TransportRequest {
        var request = request
        request.isUserInitiated = true
        return request
    }
}
