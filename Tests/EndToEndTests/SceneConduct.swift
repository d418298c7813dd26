import Foundation
import Larder
import LarderHTTP
import LarderModels
import LarderResources
import LarderServer
import LarderTime
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

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try await transport.open(named(request))
    }
}

extension MockWorld {
    /// Checks all rules of the conduct report.
    ///
    /// - Parameters:
    ///   - saves: whether validators must have saved bytes.
    ///   - exceptions: rules that the test breaks on purpose; it says why.
    @discardableResult
    func expectGoodConduct(
        saves: Bool = false,
        except exceptions: Set<ConductReport.Rule> = [],
        _ comment: @autoclosure () -> String = "",
        at location: SourceLocation = #_sourceLocation
    ) async -> ConductReport {
        let report = await conduct
        let broken = report.findings.filter { !exceptions.contains($0.rule) }
        let numbers = Set(broken.flatMap(\.entries))
        let lines = broken.isEmpty ? [] : await journal().filter { numbers.contains($0.number) }.map(\.description)
        #expect(
            broken.isEmpty,
            "\(comment()) \(report)\n\(lines.joined(separator: "\n"))",
            sourceLocation: location
        )
        #expect(report.exchanges > 0, sourceLocation: location)
        #expect((report.notModified > 0) == (report.bytesSaved > 0), "\(report)", sourceLocation: location)
        if saves { #expect(report.bytesSaved > 0, "\(report)", sourceLocation: location) }
        return report
    }
}

extension ClientScene {
    /// Checks the conduct report; see `MockWorld.expectGoodConduct`.
    ///
    /// Clients of a scene have no jitter, and once a test has moved their clock, which is not the world's, the rules about time say
    /// nothing. `ConductMatrixTests` and `ConductVariantTests` check all rules on one clock.
    @discardableResult
    func expectGoodConduct(saves: Bool = false, at location: SourceLocation = #_sourceLocation) async -> ConductReport {
        var exceptions: Set<ConductReport.Rule> = [.retriedWithoutJitter]
        if clock.uptime > MonotonicTime(nanoseconds: 0) { exceptions.formUnion([.retriedTooSoon, .refetchedFresh]) }
        return await world.expectGoodConduct(saves: saves, except: exceptions, at: location)
    }

    /// The server's list, read page by page without a client.
    func truth<Item: Codable & Sendable & Hashable>(_ path: String, as handle: String, of type: Item.Type = Item.self)
        throws -> [Item]
    {
        try world.list(path, as: handle)
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
        let back = gone.intersection(ids).sorted()
        #expect(back.isEmpty, "what was deleted came back", sourceLocation: location)
        gone.formUnion(deleted.intersection(shown.subtracting(ids)))
        shown.formUnion(ids)
    }
}
