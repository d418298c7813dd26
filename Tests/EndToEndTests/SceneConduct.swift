import Foundation
import Larder
import LarderHTTP
import LarderModels
import LarderResources
import LarderServer
import LarderTransport
import Testing

@testable import LarderDemo

/// Adds a device name to every request, so that the journal distinguishes two devices of one user.
struct NamedTransport: Transport {
    let device: String
    let transport: any Transport

    private func named(_ request: TransportRequest) -> TransportRequest {
        var request = request
        request.fields.set("Larder-Device", device)
        return request
    }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try await transport.send(named(request))
    }

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try await transport.open(named(request))
    }
}

extension ClientScene {
    /// Checks the conduct report of the journal: no repeated downloads, no duplicate requests in flight, idempotency keys for transfers.
    ///
    /// - Parameters:
    ///   - saves: whether validators must have saved bytes.
    ///   - rules: further rules of the report that must hold.
    @discardableResult
    func expectGoodConduct(
        saves: Bool = false,
        _ rules: Set<ConductReport.Rule> = [],
        at location: SourceLocation = #_sourceLocation
    ) async -> ConductReport {
        let kept = rules.union([.downloadedTwice, .duplicateInFlight, .keyMissing, .keyChanged])
        let report = await world.conduct
        let broken = report.findings.filter { kept.contains($0.rule) }
        #expect(broken.isEmpty, "\(report)", sourceLocation: location)
        #expect(report.exchanges > 0, sourceLocation: location)
        #expect((report.notModified > 0) == (report.bytesSaved > 0), "\(report)", sourceLocation: location)
        if saves { #expect(report.bytesSaved > 0, "\(report)", sourceLocation: location) }
        return report
    }

    /// The server's list, read page by page without a client.
    func truth<Item: Codable & Sendable & Hashable>(_ path: String, as handle: String, of type: Item.Type = Item.self)
        throws -> [Item]
    {
        var items: [Item] = []
        var query = "?limit=100"
        while true {
            let reply = world.perform(ScriptedAction("GET", path + query, as: handle))
            try #require(reply.status == 200, "\(path)\(query): \(reply.status)")
            let page = try JSONDecoder().decode(Page<Item>.self, from: Data(reply.body))
            items += page.items
            guard let next = page.nextCursor else { return items }
            query = "?limit=100&after=\(HTTPSource.escape(next))"
        }
    }

    /// Performs a request as another user. It must succeed.
    @discardableResult
    func act<Value: Decodable>(
        _ method: String,
        _ path: String,
        as handle: String,
        _ body: String? = nil,
        at location: SourceLocation = #_sourceLocation
    ) throws -> Value {
        let reply = world.perform(ScriptedAction(method, path, as: handle, body: body))
        #expect((200..<300).contains(reply.status), "\(method) \(path): \(reply.status)", sourceLocation: location)
        return try JSONDecoder().decode(Value.self, from: Data(reply.body))
    }

    /// Deletes a resource as another user.
    func delete(_ path: String, as handle: String, at location: SourceLocation = #_sourceLocation) {
        let status = world.perform(ScriptedAction("DELETE", path, as: handle)).status
        #expect((200..<300).contains(status), "DELETE \(path): \(status)", sourceLocation: location)
    }
}

/// Whether no snapshot shows an older version of anything than one before it, and nothing that was seen to be deleted.
func expectMonotonic<Item: CacheEntity>(
    _ lists: [[Item]],
    deleted: Set<String> = [],
    at location: SourceLocation = #_sourceLocation
) where Item.ID == String {
    var versions: [String: Int64] = [:]
    var gone: Set<String> = []
    var shown: Set<String> = []
    for list in lists {
        let ids = Set(list.map(\.id))
        #expect(ids.count == list.count, "something is shown twice", sourceLocation: location)
        for item in list {
            let version = item.entityVersion ?? 0
            #expect(version >= versions[item.id] ?? 0, "\(item.id) went back to \(version)", sourceLocation: location)
            versions[item.id] = version
        }
        #expect(gone.isDisjoint(with: ids), "what was deleted came back", sourceLocation: location)
        gone.formUnion(deleted.intersection(shown.subtracting(ids)))
        shown.formUnion(ids)
    }
}
