import LarderTime

/// The version of an entity and the time of that version.
struct EntityVersion: Sendable, Hashable {
    let number: Int64
    let updated: WallTime
}

/// Writes JSON whose parts are bytes.
extension [UInt8] {
    /// Closes an entity: appends its version and modification time.
    mutating func append(_ version: EntityVersion) {
        append(contentsOf: #","version":\#(version.number),"updatedAt":"\#(version.updated.rfc3339())"}"#.utf8)
    }

    /// A JSON array.
    init(list items: [[UInt8]]) {
        self = [UInt8(ascii: "[")]
        for (index, item) in items.enumerated() {
            if index > 0 { append(UInt8(ascii: ",")) }
            append(contentsOf: item)
        }
        append(UInt8(ascii: "]"))
    }

    /// An object with a list and further members.
    ///
    /// - Parameter members: with a comma before each; empty for none.
    init(items: [[UInt8]], as name: String = "items", _ members: String = "") {
        self = Array("{\"\(name)\":".utf8) + [UInt8](list: items) + Array("\(members)}".utf8)
    }
}
