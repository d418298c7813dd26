import Synchronization

/// The members of a list in order, with the positions of their rows on disk.
///
/// A value with shared parts: a copy costs one reference for each 64 members, and a change copies the part that contains it. The
/// difference of two values is found by comparing parts by identity. So the cost of a change depends on the number of parts and not
/// on the number of members.
package struct ListMembers: Sendable {
    /// A member, and what the list's owner notes beside it.
    package struct Entry: Sendable, Hashable {
        package let key: EntityKey
        package var mark: Int64?
        package var note: String?

        package init(_ key: EntityKey, mark: Int64? = nil, note: String? = nil) {
            self.key = key
            self.mark = mark
            self.note = note
        }
    }

    /// A member at its position. Positions ascend and have gaps, so that a new member moves no other.
    struct Slot: Sendable {
        let position: Int64
        let entry: Entry
        /// The checksum of the row.
        let sum: UInt64

        init(_ position: Int64, _ entry: Entry) {
            self.position = position
            self.entry = entry
            sum = DiskChecksum.member(entry, at: position)
        }

        func moved(to position: Int64) -> Slot { position == self.position ? self : Slot(position, entry) }
    }

    /// Consecutive members. Never empty and never changed.
    final class Part: Sendable {
        let slots: [Slot]
        let sum: UInt64
        /// The bytes that the members count in the budget.
        let bytes: Int64
        let markedCount: Int
        let notedCount: Int

        init(_ slots: [Slot]) {
            self.slots = slots
            var (sum, bytes, marked, noted): (UInt64, Int64, Int, Int) = (0, 0, 0, 0)
            for slot in slots {
                sum &+= slot.sum
                let key = slot.entry.key
                bytes += DiskConnection.bytesPerMember + Int64(2 * (key.type.utf8.count + key.id.utf8.count))
                if slot.entry.mark != nil { marked += 1 }
                if slot.entry.note != nil { noted += 1 }
            }
            (self.sum, self.bytes, markedCount, notedCount) = (sum, bytes, marked, noted)
        }

        var first: Int64 { slots[0].position }
        var last: Int64 { slots[slots.count - 1].position }
    }

    private static let gap: Int64 = 1 << 36
    private static let partUsual = 64
    private static let partMaximum = 128

    private(set) var parts: [Part] = []
    package private(set) var count = 0
    /// The checksum of all rows.
    private(set) var sum: UInt64 = 0
    /// The bytes that the members count in the budget.
    private(set) var bytes: Int64 = 0
    /// The number of members with a mark.
    package private(set) var markedCount = 0
    /// The number of members with a note.
    package var notedCount: Int { parts.reduce(0) { $0 + $1.notedCount } }
    /// Shared by all copies, so that it is built once.
    var index = SharedIndex(nil)

    package init() {}

    /// Creates a list of members without marks.
    package init(_ keys: some Sequence<EntityKey>) { self.init(entries: keys.map { Entry($0) }) }

    package init(entries: [Entry]) {
        self.init(slots: entries.enumerated().map { Slot(Int64($0.offset) * Self.gap, $0.element) })
    }

    /// Creates a list from rows, in ascending order of their positions.
    init(slots: [Slot]) { splice(0..<0, slots) }

    // MARK: Looking

    package var isEmpty: Bool { parts.isEmpty }

    package var keys: [EntityKey] {
        var keys: [EntityKey] = []
        keys.reserveCapacity(count)
        for part in parts { for slot in part.slots { keys.append(slot.entry.key) } }
        return keys
    }

    /// All members in order, without a copy.
    package var entries: some BidirectionalCollection<Entry> { parts.lazy.flatMap { $0.slots }.lazy.map(\.entry) }

    /// The marks by key. Cost: that of the parts which contain one.
    package var marks: [EntityKey: Int64] {
        var marks: [EntityKey: Int64] = [:]
        for part in parts where part.markedCount > 0 {
            for slot in part.slots where slot.entry.mark != nil { marks[slot.entry.key] = slot.entry.mark }
        }
        return marks
    }

    /// The notes by key. Cost: that of the parts which contain one.
    package var notes: [EntityKey: String] {
        var notes: [EntityKey: String] = [:]
        for part in parts where part.notedCount > 0 {
            for slot in part.slots where slot.entry.note != nil { notes[slot.entry.key] = slot.entry.note }
        }
        return notes
    }

    /// Whether a key is a member. Cost: O(1), and O(n) for the first call for a list that was read or replaced.
    package func contains(_ key: EntityKey) -> Bool { position(of: key) != nil }

    private func position(of key: EntityKey) -> Int64? { index.find(key) { indexed } }

    private var indexed: ListIndex {
        var new = ListIndex(capacity: count)
        for part in parts { for slot in part.slots { new.insert(slot.entry.key, slot.position) } }
        return new
    }

    /// The index of a list and of its copies.
    final class SharedIndex: Sendable {
        private let index: Mutex<ListIndex?>

        init(_ index: ListIndex?) { self.index = Mutex(index) }

        /// The index, if it was built.
        var known: ListIndex? { index.withLock { $0 } }

        func find(_ key: EntityKey, _ make: () -> ListIndex) -> Int64? {
            index.withLock { index in
                if let index { return index[key] }
                let new = make()
                index = new
                return new[key]
            }
        }
    }

    /// Changes the index of this copy, if it was built. An index with a repeated key is built again.
    mutating func editIndex(_ change: (inout ListIndex) -> Void) {
        guard var known = index.known else {
            // The copies build theirs of other members.
            index = SharedIndex(nil)
            return
        }
        change(&known)
        index = SharedIndex(known.repeatedCount > 0 ? nil : known)
    }

    // MARK: Changing

    /// Inserts a member before the one at an offset.
    package mutating func insert(_ entry: Entry, at offset: Int) {
        var (part, slot) = place(at: offset)
        var position = freePosition(part, slot)
        if position == nil {
            respace(part)
            (part, slot) = place(at: offset)
            position = freePosition(part, slot)
        }
        if position == nil {
            respaceAll()
            (part, slot) = place(at: offset)
            position = freePosition(part, slot)
        }
        guard let position else { preconditionFailure("A list of \(count) members has no free position.") }
        editIndex { $0.insert(entry.key, position) }
        guard !parts.isEmpty else { return splice(0..<0, [Slot(position, entry)]) }
        var slots = parts[part].slots
        slots.insert(Slot(position, entry), at: slot)
        splice(part..<(part + 1), slots)
    }

    /// Removes a key, wherever it is in the list; returns whether it was.
    @discardableResult
    package mutating func remove(_ key: EntityKey) -> Bool {
        guard let position = position(of: key) else { return false }
        guard index.known?.repeatedCount ?? 0 == 0 else {
            replace(with: entries.filter { $0.key != key })
            return true
        }
        editIndex { $0.remove(key) }
        let (part, slot) = place(of: position)
        var slots = parts[part].slots
        slots.remove(at: slot)
        splice(part..<(part + 1), slots)
        return true
    }

    /// Changes the mark of a member, if it is there.
    package mutating func setMark(_ mark: Int64?, of key: EntityKey) {
        guard let position = position(of: key) else { return }
        let (part, slot) = place(of: position)
        var slots = parts[part].slots
        var entry = slots[slot].entry
        guard entry.mark != mark else { return }
        entry.mark = mark
        slots[slot] = Slot(position, entry)
        splice(part..<(part + 1), slots)
    }

    /// The mark of a member.
    package func mark(of key: EntityKey) -> Int64? {
        guard let position = position(of: key) else { return nil }
        let (part, slot) = place(of: position)
        return parts[part].slots[slot].entry.mark
    }

    // MARK: Positions

    /// The first position and the distance for some members between two others; nil if there is no room.
    static func spacing(_ count: Int64, after: Int64?, before: Int64?) -> (start: Int64, step: Int64)? {
        let (span, isTooLong) = count.multipliedReportingOverflow(by: gap)
        guard !isTooLong else { return nil }
        switch (after, before) {
        case (nil, nil): return (0, gap)
        case (let after?, nil):
            let (_, isOut) = after.addingReportingOverflow(span)
            return isOut ? nil : (after + gap, gap)
        case (nil, let before?):
            let (start, isOut) = before.subtractingReportingOverflow(span)
            return isOut ? nil : (start, gap)
        case (let after?, let before?):
            let (distance, isOut) = before.subtractingReportingOverflow(after)
            let step = (isOut ? Int64.max : distance) / (count + 1)
            return step < 1 ? nil : (after + step, step)
        }
    }

    private func freePosition(_ part: Int, _ slot: Int) -> Int64? {
        guard !parts.isEmpty else { return 0 }
        let slots = parts[part].slots
        let after = slot > 0 ? slots[slot - 1].position : part > 0 ? parts[part - 1].last : nil
        let before = slot < slots.count ? slots[slot].position : part + 1 < parts.count ? parts[part + 1].first : nil
        return Self.spacing(1, after: after, before: before)?.start
    }

    /// Spreads the members of one part between its neighbours, if they leave room.
    private mutating func respace(_ part: Int) {
        let slots = parts[part].slots
        let after = part > 0 ? parts[part - 1].last : nil
        let before = part + 1 < parts.count ? parts[part + 1].first : nil
        guard let (start, step) = Self.spacing(Int64(slots.count), after: after, before: before), step >= 16 else {
            return
        }
        let moved = slots.enumerated().map { $0.element.moved(to: start + Int64($0.offset) * step) }
        editIndex { index in for slot in moved { index.move(slot.entry.key, to: slot.position) } }
        splice(part..<(part + 1), moved)
    }

    private mutating func respaceAll() { self = ListMembers(entries: Array(entries)) }

    /// The part and the slot of a position that is in the list.
    private func place(of position: Int64) -> (part: Int, slot: Int) {
        let part = Self.lastIndex(parts.count) { parts[$0].first <= position }
        let slots = parts[part].slots
        return (part, Self.lastIndex(slots.count) { slots[$0].position <= position })
    }

    /// The part and the slot of an offset; behind the last slot for the end.
    private func place(at offset: Int) -> (part: Int, slot: Int) {
        precondition((0...count).contains(offset), "A list of \(count) members has no place \(offset).")
        var rest = offset
        for (number, part) in parts.enumerated() {
            if rest < part.slots.count { return (number, rest) }
            rest -= part.slots.count
        }
        return parts.isEmpty ? (0, 0) : (parts.count - 1, parts[parts.count - 1].slots.count)
    }

    /// The last of `count` ascending indices that satisfies a condition, or 0.
    private static func lastIndex(_ count: Int, _ satisfies: (Int) -> Bool) -> Int {
        var (low, high) = (0, count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if satisfies(middle) { low = middle } else { high = middle }
        }
        return low
    }

    /// Replaces parts by those of some slots.
    mutating func splice(_ range: Range<Int>, _ slots: [Slot]) {
        for part in parts[range] { account(part, by: -1) }
        var new: [Part] = []
        if slots.count <= Self.partMaximum {
            if !slots.isEmpty { new.append(Part(slots)) }
        } else {
            let number = (slots.count + Self.partUsual - 1) / Self.partUsual
            for part in 0..<number {
                new.append(Part(Array(slots[(slots.count * part / number)..<(slots.count * (part + 1) / number)])))
            }
        }
        for part in new { account(part, by: 1) }
        parts.replaceSubrange(range, with: new)
        joinSmall(at: range.lowerBound)
    }

    /// Joins a small part with the next one, so that removals do not leave many small parts.
    private mutating func joinSmall(at number: Int) {
        guard number + 1 < parts.count, parts[number].slots.count < Self.partUsual / 4,
            parts[number].slots.count + parts[number + 1].slots.count <= Self.partUsual
        else { return }
        parts.replaceSubrange(number...(number + 1), with: [Part(parts[number].slots + parts[number + 1].slots)])
    }

    private mutating func account(_ part: Part, by sign: Int) {
        count += sign * part.slots.count
        sum = sign > 0 ? sum &+ part.sum : sum &- part.sum
        bytes += Int64(sign) * part.bytes
        markedCount += sign * part.markedCount
    }
}
