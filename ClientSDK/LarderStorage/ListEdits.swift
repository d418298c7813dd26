import LarderCoding

/// The edits of a list since its last reply: the replies of requests that began before do not contain them.
package struct ListEdits: Sendable, Hashable {
    /// What the latest edit of a key has done.
    package struct Edit: Sendable, Hashable {
        package let key: EntityKey
        package let stamp: Stamp
        package var kind: Kind
    }

    package enum Kind: UInt8, Sendable {
        case removal, insertion
        /// Also an insertion of what was removed since the last reply: replies of earlier requests have it at its old place.
        case move
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
        let after = new[begin..<(new.count - end)].map(\.key)
        let present = Set(after)
        let removed = before.filter { !present.contains($0) }
        let places = Dictionary(before.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        let stayed = after.compactMap { places[$0] }
        let inPlace = Set(IncreasingSubsequence.indices(of: stayed).map { stayed[$0] })
        let placed = after.filter { key in places[key].map { !inPlace.contains($0) } ?? true }
        guard removed.count + placed.count <= Self.countMaximum else {
            (edits, forgotten) = ([], stamp)
            return
        }
        for key in removed { add(Edit(key: key, stamp: stamp, kind: .removal)) }
        for key in placed { add(Edit(key: key, stamp: stamp, kind: places[key] == nil ? .insertion : .move)) }
    }

    private mutating func add(_ edit: Edit) {
        var edit = edit
        if let index = edits.firstIndex(where: { $0.key == edit.key }) {
            let earlier = edits.remove(at: index)
            if edit.kind == .insertion, earlier.kind != .insertion { edit.kind = .move }
        }
        edits.append(edit)
        guard edits.count > Self.countMaximum else { return }
        forgotten = max(forgotten, edits.removeFirst().stamp)
    }

    /// The keys that edits since a request have removed, without those of one commit.
    package func removals(since stamp: Stamp, besides own: Stamp) -> Set<EntityKey> {
        Set(edits.lazy.filter { $0.kind == .removal && $0.stamp > stamp && $0.stamp != own }.map(\.key))
    }

    /// The keys of a reply with the edits since its request began. Earlier edits are contained in it and are dropped.
    ///
    /// An inserted or moved item follows the nearest one before it in the present list that the reply has. A reply that has an inserted item
    /// knows its place.
    ///
    /// - Parameter present: the keys of the list, with all edits.
    /// - Complexity: O(m + n) for a reply of m items and a list of n.
    package mutating func applied(to keys: [EntityKey], askedAt stamp: Stamp, in present: [EntityKey]) -> [EntityKey] {
        edits.removeAll { $0.stamp <= stamp }
        if forgotten <= stamp { forgotten = .never }
        guard !edits.isEmpty else { return keys }
        let kinds = Dictionary(edits.map { ($0.key, $0.kind) }, uniquingKeysWith: { $1 })
        let kept = keys.filter { kinds[$0] == nil || kinds[$0] == .insertion }
        let known = Set(kept)
        var followers: [EntityKey?: [EntityKey]] = [:]
        var previous: EntityKey?
        for key in present {
            if known.contains(key) {
                previous = key
            } else if let kind = kinds[key], kind != .removal {
                followers[previous, default: []].append(key)
            }
        }
        var result = followers.removeValue(forKey: nil) ?? []
        for key in kept {
            result.append(key)
            result += followers.removeValue(forKey: key) ?? []
        }
        return result
    }
}

/// The stored form: the stamp of what was forgotten, and the edits, each as numbers and two texts with their lengths before them.
extension ListEdits {
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(number: forgotten.rawValue)
        for edit in edits {
            bytes.append(number: edit.stamp.rawValue)
            bytes.append(edit.kind.rawValue)
            bytes.append(part: edit.key.type.utf8)
            bytes.append(part: edit.key.id.utf8)
        }
        return bytes
    }

    /// Decodes the stored form; nil for other bytes.
    package init?(encoded bytes: ArraySlice<UInt8>) {
        var rest = bytes
        guard let first = rest.takeNumber(Int64.self) else { return nil }
        forgotten = Stamp(rawValue: first)
        while !rest.isEmpty {
            guard let stamp = rest.takeNumber(Int64.self), let kind = rest.popFirst().flatMap(Kind.init),
                let type = rest.takeText(), let id = rest.takeText()
            else { return nil }
            edits.append(Edit(key: EntityKey(type: type, id: id), stamp: Stamp(rawValue: stamp), kind: kind))
        }
    }
}
