import Foundation
import Larder
import LarderModels
import LarderServer
import Synchronization

/// A client as it is often written, for comparison: one request for each need, and at most a dictionary with a lifetime. It has no
/// validators, no disk, no outbox, and repeats what failed without asking whether it took effect.
final class PlainClient: Sendable {
    private let world: MockWorld
    private let device: String
    private let transport = SocketTransport()
    private let token: String
    /// How long the dictionary keeps a reply; nil: there is none.
    private let keeps: Duration?
    private let attempts: Int
    private let clock = SystemMonotonicClock()
    private let kept = Mutex<[String: (bytes: [UInt8], at: MonotonicTime)]>([:])

    /// Signs in.
    init(_ world: MockWorld, _ device: String, keeps: Duration?, attempts: Int) async throws {
        (self.world, self.device, self.keeps, self.attempts) = (world, device, keeps, attempts)
        let body = "{\"handle\":\"\(TourScene.person)\",\"password\":\"\(TourScene.password)\"}"
        let request = Self.request(world, "POST", "/v1/sessions", body, fields: Fields())
        let reply = try await transport.send(request)
        guard reply.status.code == 201 || reply.status.code == 200 else {
            throw Failure("The tour's plain client cannot sign in: status \(reply.status.code).")
        }
        token = try JSONDecoder().decode(SessionGrant.self, from: Data(reply.body)).accessToken
    }

    private static func request(
        _ world: MockWorld,
        _ method: String,
        _ path: String,
        _ body: String?,
        fields: Fields
    ) -> TransportRequest {
        var fields = fields
        if body != nil { fields.set(.contentType, "application/json") }
        return TransportRequest(
            method: Method(method),
            url: world.url + path,
            fields: fields,
            body: Array((body ?? "").utf8),
            timeout: .seconds(10)
        )
    }

    /// The app is closed and started again: what was in memory is gone.
    func restart() async throws { kept.withLock { $0 = [:] } }

    /// Reads a path.
    func get<Value: Decodable>(_ path: String, as type: Value.Type = Value.self) async throws -> Value {
        if let keeps {
            let entry = kept.withLock { $0[path] }
            if let entry, clock.uptime - entry.at < keeps { return try Self.decode(type, entry.bytes) }
        }
        let bytes = try await send("GET", path)
        if keeps != nil { kept.withLock { $0[path] = (bytes, clock.uptime) } }
        return try Self.decode(type, bytes)
    }

    private static func decode<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]) throws -> Value {
        try JSONDecoder().decode(type, from: Data(bytes))
    }

    /// Sends a request, and again after a failure.
    ///
    /// - Parameter body: makes the body of an attempt. Most apps give each attempt an identifier of its own.
    @discardableResult
    func send(
        _ method: String,
        _ path: String,
        _ body: (() -> String)? = nil,
        key: Bool = false
    ) async throws -> [UInt8] {
        var attempt = 0
        while true {
            attempt += 1
            do { return try await sendOnce(method, path, body?(), key: key) } catch {
                if attempt >= attempts { throw error }
            }
        }
    }

    private func sendOnce(_ method: String, _ path: String, _ body: String?, key: Bool) async throws -> [UInt8] {
        var fields = Fields()
        fields.set(.authorization, "Bearer \(token)")
        fields.set("Larder-Device", device)
        // As with the body.
        if key { fields.set("Idempotency-Key", UUID().uuidString) }
        let reply = try await transport.send(Self.request(world, method, path, body, fields: fields))
        guard (200..<300).contains(reply.status.code) else {
            throw Failure("\(method) \(path) got status \(reply.status.code).")
        }
        return reply.body
    }
}
