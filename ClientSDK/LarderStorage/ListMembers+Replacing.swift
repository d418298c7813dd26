extension ListMembers {
    /// Replaces all members; those that stay in the same order keep their positions. Cost: O(n), and O(m log m) for the m members
    /// between the common beginning and the common end.
    package mutating func replace(with new: [Entry]) {
        let old = parts.flatMap(\.slots)
        var begin = 0
        while begin < min(old.count, new.count), old[begin].entry == new[begin] { begin += 1 }
        if begin == old.count, begin == new.count { return }
        var end = 0
        while end < min(old.count, new.count) - begin, old[old.count - 1 - end].entry == new[new.count - 1 - end] {
            end += 1
        }
        let between = old[begin..<(old.count - end)]
        let wanted = new[begin..<(new.count - end)]
        let room = (begin > 0 ? old[begin - 1].position : nil, end > 0 ? old[old.count - end].position : nil)
        guard let slots = Self.aligned(Array(wanted), to: Array(between), after: room.0, before: room.1) else {
            self = ListMembers(entries: new)
            return
        }
        if index.known?.repeatedCount ?? 0 > 0 {
            index = SharedIndex(nil)
        } else {
            editIndex { index in
                for slot in between { index.remove(slot.entry.key) }
                for slot in slots { index.insert(slot.entry.key, slot.position) }
            }
        }
        // The parts that lie whole in the common beginning and end stay.
        var (lower, skipped) = (0, 0)
        while lower < parts.count, skipped + parts[lower].slots.count <= begin {
            skipped += parts[lower].slots.count
            lower += 1
        }
        var (upper, kept) = (parts.count, 0)
        while upper > lower, kept + parts[upper - 1].slots.count <= end {
            kept += parts[upper - 1].slots.count
            upper -= 1
        }
        splice(lower..<upper, Array(old[skipped..<begin]) + slots + Array(old[(old.count - end)..<(old.count - kept)]))
    }

    /// Members with positions between two others, those of `old` in the same order at their own; nil if there is no room.
    private static func aligned(_ new: [Entry], to old: [Slot], after: Int64?, before: Int64?) -> [Slot]? {
        var places: [EntityKey: Int] = [:]
        for (place, slot) in old.enumerated() where places[slot.entry.key] == nil { places[slot.entry.key] = place }
        var used = Set<Int>()
        let common = new.indices.compactMap { place -> (new: Int, old: Int)? in
            guard let known = places[new[place].key], used.insert(known).inserted else { return nil }
            return (place, known)
        }
        let staying = IncreasingSubsequence.indices(of: common.map(\.old))
        var slots: [Slot] = []
        slots.reserveCapacity(new.count)
        var last = after
        /// Appends the members up to one that stays, or to the end.
        func fill(to end: Int, before next: Int64?) -> Bool {
            let number = Int64(end - slots.count)
            guard number > 0 else { return true }
            guard let (start, step) = spacing(number, after: last, before: next) else { return false }
            for offset in 0..<number { slots.append(Slot(start + offset * step, new[slots.count])) }
            last = slots[slots.count - 1].position
            return true
        }
        for (number, pair) in common.enumerated() where staying.contains(number) {
            let position = old[pair.old].position
            guard fill(to: pair.new, before: position) else { return nil }
            let slot = old[pair.old]
            slots.append(slot.entry == new[pair.new] ? slot : Slot(position, new[pair.new]))
            last = position
        }
        return fill(to: new.count, before: before) ? slots : nil
    }
}

extension ListMembers: Hashable {
    /// Whether both have the same members with the same marks in the same order. Positions do not count.
    package static func == (left: ListMembers, right: ListMembers) -> Bool {
        guard left.count == right.count else { return false }
        let shared = zip(left.parts, right.parts).prefix { $0 === $1 }.count
        let (rest, other) = (left.parts[shared...], right.parts[shared...])
        let behind = zip(rest.reversed(), other.reversed()).prefix { $0 === $1 }.count
        func entries(_ parts: ArraySlice<Part>) -> some Sequence<Entry> {
            parts.dropLast(behind).lazy.flatMap(\.slots).map(\.entry)
        }
        return entries(rest).elementsEqual(entries(other))
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(count)
        hasher.combine(parts.first?.slots.first?.entry)
    }
}
