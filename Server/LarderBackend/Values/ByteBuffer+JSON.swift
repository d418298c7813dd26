import LarderTime

/// Writes JSON on the hot path: bytes are appended directly to the body, without a tree and without intermediate strings.
extension [UInt8] {
    /// Appends the bytes of a literal.
    @inline(__always)
    mutating func append(_ literal: StaticString) {
        unsafe append(contentsOf: UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }

    /// Appends a decimal number.
    mutating func append(decimal value: Int64) { append(contentsOf: String(value).utf8) }

    /// Appends a timestamp as a JSON string.
    mutating func append(timestamp: WallTime) { append(contentsOf: "\"\(timestamp.rfc3339())\"".utf8) }

    /// Appends a public identifier as a JSON string.
    mutating func append(identifier: EntityID) { append(contentsOf: "\"\(identifier.text)\"".utf8) }

    /// Appends an entry of an index: an identifier and a version.
    mutating func append(entryOf id: EntityID, version: Int64) {
        append(contentsOf: #"{"id":"\#(id.text)","version":\#(version)}"#.utf8)
    }

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
