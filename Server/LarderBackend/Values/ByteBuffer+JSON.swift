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

    /// Appends the items of a list, separated by commas.
    mutating func append(items: [[UInt8]]) {
        for (index, item) in items.enumerated() {
            if index > 0 { append(UInt8(ascii: ",")) }
            append(contentsOf: item)
        }
    }
}
