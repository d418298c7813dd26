extension Resource where Value: Codable {
    /// Any asynchronous function as a resource: it is read, observed, refreshed and invalidated like every other.
    ///
    /// - Parameters:
    ///   - name: the name of the request. The name and the parameters are the key; the order of the parameters does not
    ///     matter.
    ///   - parameters: tell apart requests of one name.
    ///   - policy: the read policy, unless a read passes another one.
    ///   - lifetime: how long an answer is fresh. An expired one is shown as `.stale(.expired)`.
    ///   - codec: encodes the value for the disk.
    ///   - load: the function. Concurrent reads of one key share a call.
    public static func request(
        _ name: String,
        _ parameters: [String: String] = [:],
        policy: ReadPolicy = .cacheFirst,
        lifetime: Duration = .seconds(86_400),
        codec: PayloadCodec<Value>? = nil,
        load: @escaping @Sendable () async throws -> Value
    ) -> Resource {
        var resource = Resource(
            "request " + name,
            parameters,
            freshness: .timeToLive(lifetime),
            policy: policy,
            codec: codec
        ) { _ in .value(try await load()) }
        resource.timeout = nil
        return resource
    }
}

extension LarderCache {
    /// Reads any asynchronous function through the cache.
    ///
    /// After a failed call an expired value is not returned, because the value alone could not say that it is expired:
    /// `snapshot(Resource.request(…))` returns it with its freshness and the error. A policy that asks for values of any age without a call
    /// (`cacheOnly`, `cacheAndLoad`, `staleWhileRevalidate`) returns them here too.
    ///
    /// The parameters are those of `Resource.request`.
    ///
    /// - Throws: `.notCached`, or the error of the function as a `LarderError`, unless a fresh value is stored.
    nonisolated(nonsending) public func request<Value: Codable & Sendable & Equatable>(
        _ name: String,
        _ parameters: [String: String] = [:],
        as type: Value.Type = Value.self,
        policy: ReadPolicy = .cacheFirst,
        lifetime: Duration = .seconds(86_400),
        codec: PayloadCodec<Value> = .json,
        load: @escaping @Sendable () async throws -> Value
    ) async throws(LarderError) -> Value {
        let resource = Resource.request(name, parameters, lifetime: lifetime, codec: codec, load: load)
        var policy = policy
        if case .any = policy.fallback { policy.fallback = .fresh }
        return try await value(resource, policy)
    }
}
