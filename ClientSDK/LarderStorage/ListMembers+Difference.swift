extension ListMembers {
    /// The rows that turn one list into another.
    struct Difference {
        /// The positions of rows to delete.
        var removed: [Int64] = []
        /// The rows to insert or replace.
        var stored: [Slot] = []
    }

    /// The rows to change after a change of the list. Cost: O(parts + changed parts).
    func difference(from old: ListMembers) -> Difference {
        var difference = Difference()
        var (known, own) = (Cursor(old.parts), Cursor(parts))
        while true {
            if known.skipShared(&own) { continue }
            switch (known.slot, own.slot) {
            case (nil, nil): return difference
            case (let known?, let own?) where known.position == own.position:
                if known.entry != own.entry { difference.stored.append(own) }
            case (let slot?, let other) where slot.position < other?.position ?? .max || other == nil:
                difference.removed.append(slot.position)
                known.advance()
                continue
            case (_, let slot):
                if let slot { difference.stored.append(slot) }
                own.advance()
                continue
            }
            known.advance()
            own.advance()
        }
    }

    /// A place in a list.
    private struct Cursor {
        let parts: [Part]
        var part = 0
        var offset = 0

        init(_ parts: [Part]) { self.parts = parts }

        var slot: Slot? { part < parts.count ? parts[part].slots[offset] : nil }

        mutating func advance() {
            offset += 1
            guard offset == parts[part].slots.count else { return }
            part += 1
            offset = 0
        }

        /// Skips a part that both lists have; false if they are not both at the beginning of one.
        mutating func skipShared(_ other: inout Cursor) -> Bool {
            guard offset == 0, other.offset == 0, part < parts.count, other.part < other.parts.count,
                parts[part] === other.parts[other.part]
            else { return false }
            part += 1
            other.part += 1
            return true
        }
    }
}
