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
    ///
    /// Cost: that of the parts that differ.
    package mutating func note(_ old: ListMembers, _ new: ListMembers, at stamp: Stamp) {
        let kept = Set(old.parts.map(ObjectIdentifier.init)).intersection(new.parts.map(ObjectIdentifier.init))
        var before: [EntityKey] = []
        for part in old.parts where !kept.contains(ObjectIdentifier(part)) { before += part.slots.map(\.entry.key) }
        var after: [(key: EntityKey, previous: EntityKey?)] = []
        var previous: EntityKey?
        for part in new.parts {
            if !kept.contains(ObjectIdentifier(part)) {
                for slot in part.slots {
                    after.append((slot.entry.key, previous))
                    previous = slot.entry.key
                }
            }
            previous = part.slots.last?.entry.key
        }
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
        var bytes = Self.bytes(forgotten.rawValue)
        for edit in edits {
            bytes += Self.bytes(edit.stamp.rawValue)
            bytes.append(edit.kind.rawValue | (edit.previous == nil ? 0 : 4))
            let previous = edit.previous.map { [$0.type, $0.id] } ?? []
            for text in [edit.key.type, edit.key.id] + previous {
                bytes += Self.bytes(Int64(text.utf8.count)) + Array(text.utf8)
            }
        }
        return bytes
    }

    private static func bytes(_ number: Int64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * Int64($0))) }
    }

    /// Decodes the stored form; nil for other bytes.
    package init?(encoded bytes: ArraySlice<UInt8>) {
        var rest = bytes
        func number() -> Int64? {
            guard rest.count >= 8 else { return nil }
            defer { rest = rest.dropFirst(8) }
            return rest.prefix(8).reversed().reduce(0) { $0 << 8 | Int64($1) }
        }
        func key() -> EntityKey? {
            var texts: [String] = []
            for _ in 0..<2 {
                guard let count = number(), count >= 0, count <= rest.count else { return nil }
                texts.append(String(decoding: rest.prefix(Int(count)), as: UTF8.self))
                rest = rest.dropFirst(Int(count))
            }
            return EntityKey(type: texts[0], id: texts[1])
        }
        guard let first = number() else { return nil }
        forgotten = Stamp(rawValue: first)
        while !rest.isEmpty {
            guard let stamp = number(), let bits = rest.popFirst(), let kind = Kind(rawValue: bits & ~4),
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
