import LarderStorage
import LarderTime

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
    /// Reads any asynchronous function through the cache: `value` of `Resource.request`.
    ///
    /// - Parameters:
    ///   - name: the name of the request. The name and the parameters are the key; the order of the parameters does not
    ///     matter.
    ///   - parameters: tell apart requests of one name.
    ///   - type: the type of the value.
    ///   - policy: the read policy, as for any resource.
    ///   - lifetime: how long an answer is fresh.
    ///   - codec: encodes the value for the disk.
    ///   - storage: where answers are recorded; nil: in the cache's own store.
    ///   - load: the function. Concurrent reads of one key share a call.
    /// - Throws: `.notCached`, or the error of the function as a `LarderError`.
    nonisolated(nonsending) public func request<Value: Codable & Sendable & Equatable>(
        _ name: String,
        _ parameters: [String: String] = [:],
        as type: Value.Type = Value.self,
        policy: ReadPolicy = .cacheFirst,
        lifetime: Duration = .seconds(86_400),
        codec: PayloadCodec<Value> = .json,
        storage: (any RequestStorage)? = nil,
        load: @escaping @Sendable () async throws -> Value
    ) async throws(LarderError) -> Value {
        guard let storage else {
            let resource = Resource.request(name, parameters, lifetime: lifetime, codec: codec, load: load)
            return try await value(resource, policy)
        }
        let key = QueryKey(name, parameters).description
        let (core, configuration) = (core, configuration)
        var resource = Resource.request(name, parameters, lifetime: lifetime, codec: codec) {
            let now = configuration.wallClock.now
            let value = try await load()
            do {
                let answer = RecordedAnswer(payload: try codec.encode(value), recordedAt: now)
                try await core.changing { try storage.store(answer, for: key) }
            } catch {
                configuration.onEvent(.storageFailed(LarderError(error)))
            }
            return value
        }
        resource.retention = .memory
        let restored = resource
        if !core.nodes.node(of: resource, in: core).hasContent {
            do {
                try await core.changing { () async throws in
                    guard self.stored(restored) == nil, let answer = try storage.answer(for: key) else { return }
                    try await self.put(try codec.decode(answer.payload), for: restored, fetchedAt: answer.recordedAt)
                }
            } catch {
                configuration.onEvent(.storageFailed(LarderError(error)))
            }
        }
        return try await value(resource, policy)
    }
}
