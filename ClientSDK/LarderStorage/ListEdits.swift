/// The edits of a list since its last reply: the replies of requests that began before do not contain them.
package struct ListEdits: Sendable, Hashable {
    /// What the latest edit of a key has done.
    package struct Edit: Sendable, Hashable {
        package let key: EntityKey
        package let stamp: Stamp
        package let kind: Kind
        /// The key before the inserted or moved one; nil if it is the first.
        package var previous: EntityKey?
    }

    package enum Kind: UInt8, Sendable {
        case removal, insertion, move
    }

    /// The maximum number of edits. Beyond it, the oldest ones are forgotten.
    package static let countMaximum = 64

    /// The edits in order, one for each key.
    package private(set) var edits: [Edit] = []
    /// The stamp of the latest edit that was forgotten: a reply of an earlier request is stale.
    package private(set) var forgotten = Stamp.never

    package init() {}

    package var isEmpty: Bool { edits.isEmpty && forgotten == .never }

    /// Records the keys that an edit has removed, inserted and moved.
    package mutating func note(_ old: ListMembers, _ new: ListMembers, at stamp: Stamp) {
        let (old, new) = (old.entries, new.entries)
        let (begin, end) = old.common(with: new) { $0.key == $1.key }
        let before = old[begin..<(old.count - end)].map(\.key)
        let after = (begin..<(new.count - end)).map { (key: new[$0].key, previous: $0 > 0 ? new[$0 - 1].key : nil) }
        let (known, present) = (Set(before), Set(after.map(\.key)))
        let removed = before.filter { !present.contains($0) }
        let places = Dictionary(before.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        let stayed = after.compactMap { places[$0.key] }
        let inPlace = Set(IncreasingSubsequence.indices(of: stayed).map { stayed[$0] })
        let placed = after.filter { item in places[item.key].map { !inPlace.contains($0) } ?? true }
        guard removed.count + placed.count <= Self.countMaximum else {
            (edits, forgotten) = ([], stamp)
            return
        }
        for key in removed { add(Edit(key: key, stamp: stamp, kind: .removal)) }
        for (key, previous) in placed {
            let isKnown = known.contains(key)
            add(Edit(key: key, stamp: stamp, kind: isKnown ? .move : .insertion, previous: previous))
        }
    }

    private mutating func add(_ edit: Edit) {
        edits.removeAll { $0.key == edit.key }
        edits.append(edit)
        guard edits.count > Self.countMaximum else { return }
        forgotten = max(forgotten, edits.removeFirst().stamp)
    }

    /// The keys that edits since a request have removed.
    package func removals(since stamp: Stamp) -> Set<EntityKey> {
        Set(edits.lazy.filter { $0.kind == .removal && $0.stamp > stamp }.map(\.key))
    }

    /// The keys of a reply with the edits since its request began. Earlier edits are contained in it and are dropped.
    package mutating func applied(to keys: [EntityKey], askedAt stamp: Stamp) -> [EntityKey] {
        edits.removeAll { $0.stamp <= stamp }
        if forgotten <= stamp { forgotten = .never }
        var keys = keys
        for edit in edits {
            if edit.kind == .insertion, keys.contains(edit.key) { continue }
            keys.removeAll { $0 == edit.key }
            guard edit.kind != .removal else { continue }
            let previous = edit.previous.flatMap { keys.firstIndex(of: $0) }
            keys.insert(edit.key, at: previous.map { $0 + 1 } ?? 0)
        }
        return keys
    }
}

/// The stored form: the stamp of what was forgotten, and the edits, each as numbers and texts with their lengths before them.
extension ListEdits {
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(number: forgotten.rawValue)
        for edit in edits {
            bytes.append(number: edit.stamp.rawValue)
            bytes.append(edit.kind.rawValue | (edit.previous == nil ? 0 : 4))
            for key in [edit.key, edit.previous].compactMap(\.self) {
                bytes.append(part: key.type.utf8)
                bytes.append(part: key.id.utf8)
            }
        }
        return bytes
    }

    /// Decodes the stored form; nil for other bytes.
    package init?(encoded bytes: ArraySlice<UInt8>) {
        var rest = bytes
        func key() -> EntityKey? {
            guard let type = rest.takeText(), let id = rest.takeText() else { return nil }
            return EntityKey(type: type, id: id)
        }
        guard let first = rest.takeNumber(Int64.self) else { return nil }
        forgotten = Stamp(rawValue: first)
        while !rest.isEmpty {
            guard let stamp = rest.takeNumber(Int64.self), let bits = rest.popFirst(),
                let kind = Kind(rawValue: bits & ~4),
                let own = key()
            else { return nil }
            var edit = Edit(key: own, stamp: Stamp(rawValue: stamp), kind: kind)
            if bits & 4 != 0 {
                guard let previous = key() else { return nil }
                edit.previous = previous
            }
            edits.append(edit)
        }
    }
}
