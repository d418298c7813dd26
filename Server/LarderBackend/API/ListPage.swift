/// Wraps items into the envelope of all lists: `{"items":[…],"nextCursor":…,"previousCursor":…}`.
enum ListPage {
    static let opening: StaticString = "{\"items\":["

    static func close(_ bytes: inout [UInt8], next: Cursor?, previous: Cursor?) {
        bytes.append("],\"nextCursor\":")
        append(next, to: &bytes)
        bytes.append(",\"previousCursor\":")
        append(previous, to: &bytes)
        bytes.append(UInt8(ascii: "}"))
    }

    static func representation(
        _ items: [[UInt8]],
        _ cursors: (next: Cursor?, previous: Cursor?),
        cacheControl: StaticString = CachePolicy.revalidate,
        vary: StaticString = "Authorization, Origin"
    ) -> Representation {
        var body: [UInt8] = []
        body.reserveCapacity(items.reduce(256) { $0 + $1.count + 1 })
        body.append(opening)
        body.append(items: items)
        close(&body, next: cursors.next, previous: cursors.previous)
        return Representation(body: body, cacheControl: cacheControl, vary: vary)
    }

    private static func append(_ cursor: Cursor?, to bytes: inout [UInt8]) {
        guard let cursor else { return bytes.append("null") }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: cursor.text.utf8)
        bytes.append(UInt8(ascii: "\""))
    }

    /// The cursors of a page that is sorted newest first.
    ///
    /// - Parameters:
    ///   - newest: the first row of the page; nil for an empty one.
    ///   - oldest: the last row of the page.
    ///   - extent: the oldest and newest row of the whole list.
    /// - Returns: The cursors of the older and of the newer page; nil at the ends.
    static func cursors(
        _ start: PageStart,
        newest: Int64?,
        oldest: Int64?,
        extent: ClosedRange<Int64>?,
        list: Cursor.List,
        owner: Int64 = 0
    ) -> (next: Cursor?, previous: Cursor?) {
        let older: Int64?
        let newer: Int64?
        if let first = newest, let last = oldest {
            older = extent.map { $0.lowerBound < last } ?? false ? last : nil
            newer = extent.map { $0.upperBound > first } ?? false ? first : nil
        } else {
            // An empty page lies between two rows: both cursors are relative to the requested position.
            switch start {
            case .newest: (older, newer) = (nil, nil)
            case .after(let row):
                older = nil
                newer = extent.map { $0.upperBound >= row } ?? false ? max(0, row - 1) : nil
            case .before(let row):
                older = extent.map { $0.lowerBound <= row } ?? false ? row + 1 : nil
                newer = nil
            }
        }
        return (
            older.map { Cursor(list, owner: owner, row: $0) },
            newer.map { Cursor(list, owner: owner, row: $0) }
        )
    }
}
