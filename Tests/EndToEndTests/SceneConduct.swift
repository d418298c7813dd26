import Foundation
import Larder
import LarderHTTP
import LarderModels
import LarderServer
import Testing

/// Says with every request from which device it comes: to the journal two devices of one person are two clients.
struct NamedTransport: Transport {
    let device: String
    let transport: any Transport

    private func named(_ request: TransportRequest) -> TransportRequest {
        var request = request
        if let name = FieldName("Larder-Device") { request.fields.set(name, device) }
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
    /// Holds what each story ends with, by the server's journal: nobody downloaded what they had, nobody asked for what was on its
    /// way, money moved under its keys, and what validators saved is told.
    ///
    /// - Parameters:
    ///   - saves: whether validators must have saved something.
    ///   - rules: further rules of the report that the story keeps.
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

    /// What the server has of a list, read page by page by nobody's client.
    func truth<Item: Codable & Sendable & Hashable>(_ path: String, as handle: String, of type: Item.Type = Item.self)
        throws -> [Item]
    {
        var items: [Item] = []
        var query = "?limit=100"
        while true {
            let reply = world.perform(PhantomAct("GET", path + query, as: handle))
            try #require(reply.status == 200, "\(path)\(query): \(reply.status)")
            let page = try JSONDecoder().decode(Page<Item>.self, from: Data(reply.body))
            items += page.items
            guard let next = page.nextCursor else { return items }
            query = "?limit=100&after=\(HTTPSource.escape(next))"
        }
    }

    /// Has somebody do something elsewhere, which has to succeed.
    @discardableResult
    func act<Value: Decodable>(
        _ method: String,
        _ path: String,
        as handle: String,
        _ body: String? = nil,
        at location: SourceLocation = #_sourceLocation
    ) throws -> Value {
        let reply = world.perform(PhantomAct(method, path, as: handle, body: body))
        #expect((200..<300).contains(reply.status), "\(method) \(path): \(reply.status)", sourceLocation: location)
        return try JSONDecoder().decode(Value.self, from: Data(reply.body))
    }

    /// Has somebody delete something elsewhere.
    func delete(_ path: String, as handle: String, at location: SourceLocation = #_sourceLocation) {
        let status = world.perform(PhantomAct("DELETE", path, as: handle)).status
        #expect((200..<300).contains(status), "DELETE \(path): \(status)", sourceLocation: location)
    }
}

/// Whether no snapshot shows an older version of anything than one before it, and nothing that was seen to be deleted.
func expectMonotonic<Item: Entity>(
    _ lists: [[Item]],
    deleted: Set<String> = [],
    at location: SourceLocation = #_sourceLocation
) {
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
