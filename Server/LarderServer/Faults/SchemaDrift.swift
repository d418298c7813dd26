import LarderCoding

/// Replies as a later version of the API might send them, which an old client must tolerate.
///
/// A change is a function of the seed and of the member's position, so that equal representations stay equal.
public struct SchemaDrift: Sendable, Hashable {
    /// One kind of change.
    public enum Change: String, Sendable, Hashable, CaseIterable {
        /// Unknown members are added.
        case newMembers
        /// Enumerations have unknown cases.
        case newCases
        /// Members that are null are omitted.
        case noNulls
        /// Versions are above 2⁵³.
        case largeVersions
        /// Members have another order.
        case otherOrder
    }

    /// The seed of all changes.
    public var seed: UInt64
    public var changes = Set(Change.allCases)
    /// The probability that a member is changed.
    public var probability = 0.5

    /// All changes.
    public init(seed: UInt64) { self.seed = seed }

    private static let enumerations: Set<String> = ["kind", "status", "type"]

    func apply(_ value: JSONValue, at path: String = "") -> JSONValue {
        switch value {
        case .object(let object):
            var members: [JSONObject.Member] = []
            for member in object.members {
                let place = path + "/" + member.name
                if changes.contains(.noNulls), member.value == .null, touches(place, 1) { continue }
                members.append(.init(name: member.name, value: changed(member, at: place)))
            }
            if changes.contains(.newMembers), touches(path, 2) {
                members.append(
                    .init(name: "x-\(hash(path, 3) % 1_000)", value: .members(["since": .string("2027-01")]))
                )
            }
            if changes.contains(.otherOrder), touches(path, 4) {
                members.sort { hash($0.name, 5) < hash($1.name, 5) }
            }
            return .object(JSONObject(members))
        case .array(let array):
            // Elements have no position: all elements of a list are changed alike.
            return .array(array.map { apply($0, at: path + "/*") })
        default: return value
        }
    }

    private func changed(_ member: JSONObject.Member, at place: String) -> JSONValue {
        switch member.value {
        case .string where changes.contains(.newCases) && Self.enumerations.contains(member.name) && touches(place, 6):
            return .string("unheard-of-\(hash(place, 7) % 100)")
        case .integer(let number)
        where changes.contains(.largeVersions) && member.name == "version" && touches(place, 8):
            return .integer(number &+ (1 << 53))
        default: return apply(member.value, at: place)
        }
    }

    private func touches(_ place: String, _ salt: UInt64) -> Bool {
        Double(hash(place, salt) >> 11) * 0x1p-53 < probability
    }

    private func hash(_ place: String, _ salt: UInt64) -> UInt64 {
        ContentHash.hash64(Array(place.utf8).span, seed: seed &+ salt &* 0x9E37_79B9_7F4A_7C15)
    }

    static func read(_ reader: BodyReader) -> SchemaDrift {
        var drift = SchemaDrift(seed: UInt64(reader.integer("seed", in: 0...Int.max) ?? 0))
        if reader.has("changes") { drift.changes = Set(reader.choices("changes", Change.self)) }
        return drift
    }

    var json: JSONValue {
        let names = Change.allCases.filter(changes.contains).map { JSONValue.string($0.rawValue) }
        return .members(["seed": .integer(Int64(bitPattern: seed)), "changes": .array(names)])
    }
}
