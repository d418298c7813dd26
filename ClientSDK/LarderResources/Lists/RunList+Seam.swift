import LarderStorage

extension RunList {
    /// Where a page ends in the runs below its place, and how the list goes on there.
    struct Seam {
        enum Kind {
            /// The last item of the page is the one above the seam: what followed it in the list follows the page.
            case same
            /// The page reaches the first item below the seam: no item is missing there.
            case closed
            /// Items may be missing there.
            case open
        }

        /// The first item that the page does not cover.
        var place = Place()
        var kind = Kind.open
        /// The number of items of the page above the seam.
        var count: Int
        /// Whether the last item of the page is one that the list had.
        var isUnbroken = false

        /// Finds the end of a page.
        ///
        /// A later page has covered the rest: this one ends where that one begins. Otherwise this one ends behind the last of its items
        /// whose place in the list is known, and behind the items there that were inserted after the request began.
        ///
        /// - Parameters:
        ///   - start: the start of the page in the list; nil: it is the newest one.
        ///   - closed: the run that follows the page, whether they share an item or not; nil: none does.
        init(of page: IncomingPage, start: Start?, in below: [Run], closing closed: Int?) {
            count = page.keys.count
            var places: [EntityKey: Place] = [:]
            for (run, known) in below.enumerated() {
                for (item, entry) in known.items.enumerated() where entry.isPlaced {
                    places[entry.key] = Place(run: run, item: item)
                }
            }
            for (index, key) in page.keys.enumerated() {
                guard let known = places[key], page.isBefore(below[known.run]) else { continue }
                (place, kind, count) = (Place(run: known.run), .closed, index)
                return
            }
            var last = page.keys.lastIndex { places[$0] != nil }
            if let last, let known = places[page.keys[last]] {
                place = Place(run: known.run, item: known.item + 1)
                if last == count - 1 { kind = .same }
            } else if start == nil, let first = below.first {
                // It overlaps inserted items only, which join nothing.
                let inserted = first.items.prefix { !$0.isPlaced }
                if let item = inserted.lastIndex(where: { page.keys.contains($0.key) }) {
                    place.item = item + 1
                    last = page.keys.firstIndex(of: inserted[item].key)
                }
            }
            isUnbroken = (last ?? -1) == count - 1
            if let closed, closed >= 0, place.run < closed || place == Place(run: closed) {
                (place, kind) = (Place(run: closed), .closed)
                return
            }
            // What came after the request is above the items of the page that the list did not have.
            let goesOn = last.map { $0 < count - 1 && page.cursor != nil } ?? (start == nil)
            guard goesOn, place.run < below.count else { return }
            place.item +=
                below[place.run].items[place.item...].prefix { item in
                    item.insertion.map { page.isBefore($0) || places.isEmpty } ?? false
                }.count
        }
    }
}
