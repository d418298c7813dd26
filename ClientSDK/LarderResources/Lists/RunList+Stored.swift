import LarderCoding
import LarderStorage
import LarderTime

/// The stored form: members of the index with marks and notes, and details beside them.
extension RunList {
    /// The part of a list that is stored beside the members of the index. Its size does not depend on their number.
    struct Details: Sendable, Hashable {
        var tail = Tail.unknown
        var lastGap = 0
        /// The stamp of the latest page of a feed, or page besides the newest one, that the newest run came with.
        var fed = Stamp.never

        /// What follows the last item, the number of the last gap, the stamp, and the cursor.
        var encoded: [UInt8] {
            var bytes: [UInt8] = [tail == .unknown ? 0 : tail == .end ? 1 : 2]
            bytes.append(number: Int64(lastGap))
            bytes.append(number: fed.rawValue)
            return bytes + Array((tail.cursor ?? "").utf8)
        }

        init(tail: Tail = .unknown) { self.tail = tail }

        /// Decodes stored bytes. A new index has none.
        init(_ bytes: [UInt8]) throws(LarderError) {
            var rest = bytes[...]
            guard let kind = rest.popFirst() else { return }
            guard let lastGap = rest.takeNumber(Int64.self), let fed = rest.takeNumber(Int64.self) else {
                throw LarderError(.storage, "A stored list has no cursors.")
            }
            (self.lastGap, self.fed) = (Int(lastGap), Stamp(rawValue: fed))
            tail = kind == 0 ? .unknown : kind == 1 ? .end : .cursor(String(decoding: rest, as: UTF8.self))
        }
    }

    /// Creates a list from the members of its index.
    ///
    /// - Parameters:
    ///   - keys: the members with pending changes applied; nil: all members.
    ///   - head: the times of the newest run.
    ///   - asked: the stamp of the latest request for the newest run.
    init(
        _ members: ListMembers = ListMembers(),
        _ details: Details = Details(),
        showing keys: [EntityKey]? = nil,
        head: Freshness.Times = .none,
        asked: Stamp = .never
    ) {
        self.details = details
        runs = [Run(facts: PageFacts(head, asked: max(asked, details.fed)))]
        var members = members
        if let keys { members.setKeys(keys) }
        for entry in members.entries {
            if let start = Start(entry.key) {
                runs.append(
                    Run(start: start, facts: entry.note.flatMap { PageFacts(decoding: $0) } ?? PageFacts(.none))
                )
            } else {
                runs[runs.count - 1].items.append(Item(entry.key, entry.mark.map { Insertion(mark: $0) }))
            }
        }
        normalize()
    }

    /// The members of the index, with the facts about items and runs as marks and notes.
    var members: [ListMembers.Entry] {
        runs.enumerated().flatMap { number, run in
            (run.start.map { [ListMembers.Entry($0.key(ofRun: number), note: run.facts.encoded)] } ?? [])
                + run.items.map { ListMembers.Entry($0.key, mark: $0.insertion?.mark) }
        }
    }
}

extension RunList.Start {
    private static let gapType = "==gap"
    private static let joinedType = "==page"
    /// The type of a run that continues the one above it, and whose cursor is not known.
    private static let unknownType = "==part"

    /// Decodes a member of the index; nil if it is an item.
    init?(_ key: EntityKey) {
        switch key.type {
        case Self.joinedType: self = .joined(key.id)
        case Self.unknownType: self = .joined(nil)
        case Self.gapType:
            let parts = key.id.split(separator: " ", maxSplits: 1)
            guard let number = parts.first.flatMap({ Int($0) }) else { return nil }
            self = .gap(number, cursor: parts.count > 1 ? String(parts[1]) : nil)
        default: return nil
        }
    }

    /// The member of the index. No two runs of a list have the same.
    func key(ofRun number: Int) -> EntityKey {
        if let gap { return EntityKey(type: Self.gapType, id: "\(gap) \(cursor ?? "")") }
        return cursor.map { EntityKey(type: Self.joinedType, id: $0) }
            ?? EntityKey(type: Self.unknownType, id: "\(number)")
    }
}

extension DiskQuery {
    func runs() throws -> RunList {
        let head = Freshness.Times(times, asked: asked)
        return RunList(members, try RunList.Details(details), head: head, asked: asked)
    }

    /// Changes the runs of the list, and returns the new ones.
    @discardableResult
    mutating func editRuns(_ change: (inout RunList) -> Void) throws -> RunList {
        var list = try runs()
        change(&list)
        members.replace(with: list.members)
        isComplete = list.tail == .end && !list.hasGap
        details = list.details.encoded
        return list
    }
}
