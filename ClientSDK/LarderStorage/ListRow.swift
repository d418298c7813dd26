/// The row of a member of a list.
struct ListRow: Sendable {
    /// Positions ascend and have gaps, so that a new member moves no other.
    let position: Int64
    let entry: ListMembers.Entry
    /// The checksum of the row.
    let sum: UInt64

    init(_ position: Int64, _ entry: ListMembers.Entry) {
        self.position = position
        self.entry = entry
        sum = DiskChecksum.member(entry, at: position)
    }

    /// The bytes that it counts in the budget.
    var bytes: Int64 {
        DiskConnection.bytesPerMember
            + Int64(2 * (entry.key.type.utf8.count + entry.key.id.utf8.count) + (entry.note?.utf8.count ?? 0))
    }

    /// The part of a list's checksum that its members make.
    static func sum(of rows: [ListRow]) -> UInt64 { rows.reduce(0) { $0 &+ $1.sum } }

    private static let gap: Int64 = 1 << 36

    /// The rows of some members, so that few of those that are stored change: those before and after all that differs keep their positions.
    static func rows(of new: [ListMembers.Entry], after old: [ListRow]) -> [ListRow] {
        var (begin, end) = old.common(with: new) { $0.entry == $1 }
        if new.count <= old.count {
            let changed = zip(old.dropFirst(begin), new[begin..<(new.count - end)])
            return old.prefix(begin) + changed.map { ListRow($0.position, $1) } + old.suffix(end)
        }
        while true {
            let bounds = (begin > 0 ? old[begin - 1].position : nil, end > 0 ? old[old.count - end].position : nil)
            let wanted = new[begin..<(new.count - end)]
            if let (start, step) = spacing(Int64(wanted.count), bounds) {
                let rows = wanted.enumerated().map { ListRow(start + Int64($0.offset) * step, $0.element) }
                return old.prefix(begin) + rows + old.suffix(end)
            }
            // There is no room between two members: those around them are spread.
            (begin, end) = (max(0, begin - 64), max(0, end - 64))
        }
    }

    /// The first position and the distance for some members between two others; nil if there is no room.
    private static func spacing(
        _ count: Int64,
        _ bounds: (after: Int64?, before: Int64?)
    ) -> (start: Int64, step: Int64)? {
        let (span, isTooLong) = count.multipliedReportingOverflow(by: gap)
        guard !isTooLong else { return nil }
        switch bounds {
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

    /// The rows that turn the stored ones into others: the positions to delete, and the rows to insert or replace.
    static func difference(from old: [ListRow], to new: [ListRow]) -> (removed: [Int64], stored: [ListRow]) {
        let (begin, end) = old.common(with: new) { $0.position == $1.position && $0.entry == $1.entry }
        let (before, after) = (old[begin..<(old.count - end)], new[begin..<(new.count - end)])
        let known = Dictionary(before.map { ($0.position, $0.entry) }, uniquingKeysWith: { first, _ in first })
        let kept = Set(after.map(\.position))
        return (
            before.map(\.position).filter { !kept.contains($0) }, after.filter { known[$0.position] != $0.entry }
        )
    }
}
