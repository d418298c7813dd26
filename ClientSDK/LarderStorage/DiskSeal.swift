import LarderCoding
import LarderSQLite

/// Encodes what the store keeps with the payload transform, and checks it when it is decoded.
///
/// Under a transform, a checksum over the content and its place in the store is encoded with the content. Bytes that were decoded with
/// a wrong key, or that belong to another row, are detected although the transform itself may check nothing.
struct DiskSeal: Sendable {
    let transform: (any DiskStore.PayloadTransform)?

    /// The decoded bytes do not have their checksum.
    struct Mismatch: Error, CustomStringConvertible {
        var description: String { "the key is wrong, or the stored bytes are damaged" }
    }

    private static let sumBytes = 8

    /// Encodes content for storage; without a transform, the content itself.
    ///
    /// - Parameter place: the digest of the content's place (`DiskChecksum.place`).
    func close(_ content: [UInt8], _ place: @autoclosure () -> UInt64) throws(DiskError) -> [UInt8] {
        guard let transform else { return content }
        var whole = content
        whole.append(number: DiskChecksum.content(content, at: place()))
        do {
            return try transform.encode(whole)
        } catch {
            throw DiskError(
                .transform,
                "The payload transform '\(transform.identifier)' could not encode; nothing was stored: \(error)",
                cause: error
            )
        }
    }

    /// Decodes stored content.
    ///
    /// - Throws: the error of the transform, or `Mismatch`.
    func open(_ stored: [UInt8], _ place: @autoclosure () -> UInt64) throws -> [UInt8] {
        guard let transform else { return stored }
        let whole = try transform.decode(stored)
        let content = Array(whole.dropLast(Self.sumBytes))
        var sum = whole.suffix(Self.sumBytes)
        guard sum.takeNumber() == DiskChecksum.content(content, at: place()) else { throw Mismatch() }
        return content
    }
}

extension DiskStore {
    /// Encodes a secret that is stored beside the database, as the payloads in it are.
    ///
    /// - Parameter name: must be the same when it is decoded.
    package func sealed(_ content: [UInt8], as name: String) throws(DiskError) -> [UInt8] {
        try context.seal.close(content, DiskChecksum.place(DiskSeal.besideKind, "", name))
    }

    /// Decodes what `sealed` has encoded.
    ///
    /// - Throws: `.transform` if the key is wrong or the bytes are damaged.
    package func opened(_ stored: [UInt8], as name: String) throws(DiskError) -> [UInt8] {
        do {
            return try context.seal.open(stored, DiskChecksum.place(DiskSeal.besideKind, "", name))
        } catch {
            throw DiskError(.transform, "'\(name)' cannot be decoded: \(error)", cause: error)
        }
    }
}

extension DiskSeal {
    /// The first parts of places: items have 0 and 1.
    static let metadataKind: Int64 = 16
    static let outboxKind: Int64 = 32
    static let besideKind: Int64 = 33
    static let probeKind: Int64 = 34
    /// Plus the kind of the item.
    static let tagKind: Int64 = 48
    static let noteKind: Int64 = 64
    static let markerKind: Int64 = 65
}

/// Texts in columns of their own: entity tags, and the cursors of pages.
extension DiskSeal {
    /// Encodes a text; without a transform, the text itself.
    func close(text: String?, _ place: @autoclosure () -> UInt64) throws(DiskError) -> String? {
        guard transform != nil, let text else { return text }
        return Base64.encode(try close(Array(text.utf8), place()))
    }

    /// Decodes a text; nil if it was encoded with another key, or for another place.
    func open(text: String?, _ place: @autoclosure () -> UInt64) -> String? {
        guard transform != nil, let text else { return text }
        guard let bytes = Base64.decode(text) else { return nil }
        do { return String(decoding: try open(bytes, place()), as: UTF8.self) } catch { return nil }
    }

    /// The stored form of a member of a list.
    func close(_ entry: ListMembers.Entry) throws(DiskError) -> (id: String, note: String?) {
        let key = entry.key
        guard transform != nil, key.isMarker || entry.note != nil else { return (key.id, entry.note) }
        let id = try key.isMarker ? close(text: key.id, Self.markerPlace(key.type)) : key.id
        return (id ?? key.id, try close(text: entry.note, Self.notePlace(key.type)))
    }

    /// A member of a list from its stored form. What cannot be decoded stays as it is, and the checksum of the list is wrong.
    func member(_ key: EntityKey, mark: Int64?, note: String?) -> ListMembers.Entry {
        guard transform != nil, key.isMarker || note != nil else { return .init(key, mark: mark, note: note) }
        let id = key.isMarker ? open(text: key.id, Self.markerPlace(key.type)) ?? key.id : key.id
        return .init(
            EntityKey(type: key.type, id: id),
            mark: mark,
            note: open(text: note, Self.notePlace(key.type)) ?? note
        )
    }

    private static func markerPlace(_ type: String) -> UInt64 { DiskChecksum.place(markerKind, type, "") }

    private static func notePlace(_ type: String) -> UInt64 { DiskChecksum.place(noteKind, type, "") }

    /// The place of an item's entity tag.
    static func tagPlace(_ kind: DiskKind, _ space: String, _ key: String) -> UInt64 {
        DiskChecksum.place(tagKind + kind.rawValue, space, key)
    }
}

extension EntityKey {
    /// Whether it is no entity but a mark in a list, such as the beginning of a page, whose identifier contains a cursor.
    var isMarker: Bool { type.utf8.starts(with: "==".utf8) }
}

extension DiskConnection {
    /// The key of an encoded constant, from which a process finds out whether it has the transform and the key of the store.
    private static let probeKey = "seal"
    private static let probe = Array("larder".utf8)

    /// Adapts the store to a transform or a key that it was not written with: removes all items and change tokens, unless they are readable
    /// with an older key, and encodes the operations, metadata and secrets that are readable. What is not readable stays as it is.
    ///
    /// While the transform itself cannot encode (its key is not available), nothing is changed.
    func checkTransform() throws {
        let seal = context.seal
        let known = try metadata(.own, Self.probeKey)
        if known == nil, seal.transform == nil { return }
        var new: [UInt8]?
        var isReadable = false
        if let transform = seal.transform {
            if let known, isProbe(known) {
                if transform.isCurrent(known) { return }
                isReadable = true
            }
            do {
                new = try seal.close(Self.probe, probePlace)
                try resealSecrets(arePlain: known == nil)
            } catch {
                return context.post(.transformFailed(DiskError(error)))
            }
        }
        let (items, unreadable) = try database.transaction { () throws in
            let items = isReadable ? 0 : try totals().items
            if !isReadable { try removeAllItems() }
            try resealMetadata(keepsTokens: isReadable)
            let unreadable = try resealOutbox()
            try setMetadata(.own, Self.probeKey, new)
            return (Int(items), unreadable)
        }
        if !isReadable, known != nil || items > 0 || unreadable > 0 {
            context.post(.transformChanged(itemsRemoved: items, operationsUnreadable: unreadable))
        }
        // The log has the content as it was written before.
        do { _ = try database.checkpoint() } catch { context.post(.cleaningFailed(DiskError(error))) }
    }

    /// Whether the payload transform can decode now what it has encoded before: it cannot while its key is locked.
    func hasKey() throws(DiskError) -> Bool {
        guard context.seal.transform != nil, let known = try metadata(.own, Self.probeKey) else { return true }
        return isProbe(known)
    }

    private var probePlace: UInt64 {
        DiskChecksum.place(DiskSeal.probeKind, context.seal.transform?.identifier ?? "", "")
    }

    private func isProbe(_ stored: [UInt8]) -> Bool { opened(stored, probePlace) == Self.probe }

    /// Decoded content; nil if it was encoded with another key, or is not encoded.
    private func opened(_ stored: [UInt8], _ place: UInt64) -> [UInt8]? {
        do { return try context.seal.open(stored, place) } catch { return nil }
    }

    private func resealMetadata(keepsTokens: Bool) throws(DiskError) {
        var known: [(kind: MetadataKind, key: String, value: [UInt8]?)] = []
        _ = try all(.metadataAll) { row in
            guard let kind = MetadataKind(rawValue: row.int64(0)), kind != .own else { return Void?.none }
            let key = row.text(1)
            known.append((kind, key, value(of: key, kind, row.bytes(2), sum: row.int64(3))))
            return nil
        }
        for (kind, key, value) in known {
            if kind == .token, !keepsTokens {
                try setMetadata(kind, key, nil)
            } else if let value, context.seal.transform != nil {
                try setMetadata(kind, key, value)
            }
        }
    }

    /// - Parameter arePlain: whether the store had no transform.
    private func resealSecrets(arePlain: Bool) throws {
        let (files, directory) = (context.files, context.configuration.directory)
        for file in files.names(in: directory) where file.hasPrefix(DiskStore.secretPrefix) && !file.hasSuffix(".new") {
            let path = "\(directory)/\(file)"
            let place = DiskChecksum.place(
                DiskSeal.besideKind,
                "",
                String(file.dropFirst(DiskStore.secretPrefix.count))
            )
            guard let stored = files.read(path) else { continue }
            var plain = arePlain ? stored : nil
            // Some are encoded already if an earlier attempt was interrupted.
            if let opened = opened(stored, place) { plain = opened }
            guard let plain else { continue }
            try files.write(try context.seal.close(plain, place), to: path, temporary: path + ".new")
        }
    }

    /// Encodes all readable operations; returns how many are not readable.
    private func resealOutbox() throws(DiskError) -> Int {
        let rows = try outbox(after: Int64.min, limit: .max)
        for row in rows where row.sealed == nil { try store(row, .outboxUpdate) }
        return rows.count { $0.sealed != nil }
    }
}
