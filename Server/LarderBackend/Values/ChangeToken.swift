/// A position in the change feed, opaque to clients: all changes up to it were delivered.
///
/// It contains the database's identity, the reader and the filter, because a position has no meaning for others: a foreign
/// token must lead to a resync and never to silently missing changes.
package struct ChangeToken: Hashable, Sendable {
    /// The history that the position belongs to.
    package var instance: UInt64
    /// The reader's row; 0 for an anonymous reader.
    var viewer: Int64
    var filter: ChangeFilter
    /// The last position covered.
    var position: Int64
    /// The newest position when this enumeration began. A reader that started at the beginning never saw what was deleted
    /// before then and does not need those tombstones.
    var floor: Int64 = 0

}

extension ChangeToken {
    /// Parses a token; nil for text that no version of this server can have issued.
    init?(parsing text: String) {
        guard let values = OpaqueText.decode(text, format: Self.format, count: 5),
            let viewer = Int64(exactly: values[1]), let rawFilter = UInt16(exactly: values[2]),
            rawFilter != 0, ChangeFilter.all.contains(ChangeFilter(rawValue: rawFilter)),
            let position = Int64(exactly: values[3]), let floor = Int64(exactly: values[4])
        else { return nil }
        self.init(
            instance: values[0],
            viewer: viewer,
            filter: ChangeFilter(rawValue: rawFilter),
            position: position,
            floor: floor
        )
    }

    /// The token after everything up to `position` was delivered. The floor follows, so that a position has exactly one text.
    func advanced(to position: Int64) -> ChangeToken {
        var token = self
        token.position = position
        token.floor = max(floor, position)
        return token
    }

    /// The URL-safe text for clients.
    var text: String {
        OpaqueText.encode(
            format: Self.format,
            [instance, UInt64(viewer), UInt64(filter.rawValue), UInt64(position), UInt64(floor)]
        )
    }

    private static let format: UInt8 = 1
}
