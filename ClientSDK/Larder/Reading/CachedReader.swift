import Foundation
import LarderHTTP
import LarderTime

/// Reads values through memory, disk and network (cache-aside), revalidating what is stale by its ETag.
///
/// Safe from any task.
final class CachedReader: Sendable {
    private let transport: any Transport
    private let clock: any WallClock
    private let memory: MemoryTier<String, StoredRecord>
    private let disk: DiskTier

    init(transport: any Transport, clock: any WallClock, memory: MemoryTier<String, StoredRecord>, disk: DiskTier) {
        self.transport = transport
        self.clock = clock
        self.memory = memory
        self.disk = disk
    }

    /// Reads a value: from the cache while it is fresh; else from the server, with what the cache has as a fallback.
    ///
    /// A reply that does not decode is an error and leaves the cache as it was.
    ///
    /// - Throws: `.offline`, `.refused` or `.unexpectedReply` where the cache has nothing to show instead.
    func read<Value: Decodable & Sendable>(
        _ type: Value.Type,
        url: String,
        timeToLive: Duration
    ) async throws(LarderError) -> Snapshot<Value> {
        let cached = try lookUp(url)
        // What does not decode any more (another version of the app wrote it) is as good as not there.
        let known = cached.flatMap { cached in
            (try? decode(type, cached.record.payload)).map { (value: $0, record: cached.record, source: cached.source) }
        }
        if let known, known.record.freshness.isFresh(at: clock.now) {
            return snapshot(known.value, known.record, Self.source(known.source))
        }
        do {
            return try await fetch(type, url: url, timeToLive: timeToLive, known: known.map { ($0.value, $0.record) })
        } catch {
            guard let known else { throw error }
            return snapshot(known.value, known.record, Self.source(known.source), error)
        }
    }

    private enum Tier {
        case memory
        case disk
    }

    private static func source<Value>(_ tier: Tier) -> Snapshot<Value>.Source { tier == .memory ? .memory : .disk }

    private func lookUp(_ key: String) throws(LarderError) -> (record: StoredRecord, source: Tier)? {
        if let record = memory[key] { return (record, .memory) }
        guard let record = try disk.find(key) else { return nil }
        memory.store(record, for: key)
        return (record, .disk)
    }

    private func fetch<Value: Decodable & Sendable>(
        _ type: Value.Type,
        url: String,
        timeToLive: Duration,
        known: (value: Value, record: StoredRecord)?
    ) async throws(LarderError) -> Snapshot<Value> {
        var fields: Fields = [.accept: "application/json"]
        if let tag = known?.record.entityTag { fields.add(.ifNoneMatch, tag) }
        // Counted from before the request: the value was current at some time after that.
        let asked = clock.now
        let response: TransportResponse
        do {
            response = try await transport.send(TransportRequest(url: url, fields: fields))
        } catch {
            throw LarderError(.offline, "There is no reply from \(url): \(error)", cause: error)
        }
        switch (response.status, known) {
        case (.notModified, let known?):
            var record = known.record
            record.freshness.validatedAt = asked
            record.freshness.expiresAt = asked + timeToLive
            try disk.renew(url, record.freshness)
            memory.store(record, for: url)
            return snapshot(known.value, record, .network)
        case (.ok, _):
            let value: Value
            do {
                value = try decode(type, response.body)
            } catch {
                throw LarderError(.unexpectedReply, "The reply from \(url) is not a \(type): \(error)", cause: error)
            }
            let record = StoredRecord(
                payload: response.body,
                entityTag: response.fields[.etag],
                freshness: Freshness(fetchedAt: asked, validatedAt: asked, expiresAt: asked + timeToLive)
            )
            try disk.store(record, for: url)
            memory.store(record, for: url)
            return snapshot(value, record, .network)
        default:
            throw LarderError(.refused, "\(url) was answered with \(response.status.code).")
        }
    }

    private func decode<Value: Decodable>(_ type: Value.Type, _ payload: [UInt8]) throws -> Value {
        try JSONDecoder().decode(type, from: Data(payload))
    }

    private func snapshot<Value: Sendable>(
        _ value: Value,
        _ record: StoredRecord,
        _ source: Snapshot<Value>.Source,
        _ error: LarderError? = nil
    ) -> Snapshot<Value> {
        Snapshot(
            value: value,
            freshness: record.freshness,
            staleReason: record.freshness.staleReason(at: clock.now),
            source: source,
            refreshError: error
        )
    }
}
