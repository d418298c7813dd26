/// Wraps items into the envelope of all lists: `{"items":[…],"nextCursor":…,"previousCursor":…}`.
enum ListPage {
    static func representation(
        _ items: [[UInt8]],
        _ cursors: (next: Cursor?, previous: Cursor?),
        cacheControl: String = CachePolicy.revalidate,
        vary: String = "Authorization, Origin"
    ) -> Representation {
        Representation(body: body(items, cursors), cacheControl: cacheControl, vary: vary)
    }

    static func body(_ items: [[UInt8]], _ cursors: (next: Cursor?, previous: Cursor?) = (nil, nil)) -> [UInt8] {
        var body: [UInt8] = []
        body.reserveCapacity(items.reduce(256) { $0 + $1.count + 1 })
        body.append("{\"items\":[")
        body.append(items: items)
        body.append("],\"nextCursor\":")
        append(cursors.next, to: &body)
        body.append(",\"previousCursor\":")
        append(cursors.previous, to: &body)
        body.append("}")
        return body
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
    ///   - rows: those of the page.
    ///   - extent: the oldest and newest row of the whole list.
    /// - Returns: The cursors of the older and of the newer page; nil at the ends.
    static func cursors(
        _ start: PageStart,
        _ rows: [Int64],
        extent: ClosedRange<Int64>?,
        list: Cursor.List,
        owner: Int64 = 0
    ) -> (next: Cursor?, previous: Cursor?) {
        let older: Int64?
        let newer: Int64?
        if let first = rows.first, let last = rows.last {
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
