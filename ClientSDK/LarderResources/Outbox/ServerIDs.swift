import Foundation

/// The server IDs of entities whose creation has ended recently, by the ordering scope of the creation.
///
/// A change whose caller still has the temporary ID may be stored after the creation has ended, in this process or another one. The number of
/// IDs is bounded: such a change follows within moments.
struct ServerIDs: Sendable {
    private struct Name: Codable, Sendable {
        let scope: String
        let temporary: String
        let server: String
    }

    /// The metadata key under which they are stored beside the rows.
    static let metadataKey = "larder.names"
    private static let countMaximum = 64

    private var names: [Name] = []

    init() {}

    /// The stored IDs; none if they cannot be decoded, because another version of the application has stored them.
    init(encoded bytes: [UInt8]?) {
        if let bytes, let stored = try? JSONDecoder().decode([Name].self, from: Data(bytes)) { names = stored }
    }

    func encoded() throws -> [UInt8] { Array(try JSONEncoder().encode(names)) }

    /// The server IDs by the temporary ones, for an operation of a scope: if several scopes have a temporary one, its own counts, and then the
    /// newest.
    subscript(scope: String) -> [String: String] {
        let own = names.filter { $0.scope == scope }
        return (names + own).reduce(into: [:]) { $0[$1.temporary] = $1.server }
    }

    /// The server ID of the newest entity with a temporary one, in any scope.
    func serverID(of temporary: String) -> String? { names.last { $0.temporary == temporary }?.server }

    /// Adds the IDs of one reply. The oldest ones beyond the maximum are dropped, but none of the reply.
    mutating func add(_ ids: [String: String], in scope: String) {
        names.removeAll { $0.scope == scope && ids[$0.temporary] != nil }
        names += ids.map { Name(scope: scope, temporary: $0.key, server: $0.value) }
        names.removeFirst(max(0, names.count - max(Self.countMaximum, ids.count)))
    }
}
