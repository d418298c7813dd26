/// What a power loss may leave of files: everything that was synced, and any part of the rest.
///
/// A change of a file is durable after a sync of the file, and a new or removed name after a sync of its directory. Until then the
/// system may have written any of it, in any order, in sectors of 512 bytes.
struct UnsyncedFiles: Sendable {
    private enum Change: Sendable {
        case write(Int, [UInt8])
        case truncate(Int)
    }

    private struct File: Sendable {
        let path: String
        /// The content at the last sync.
        var synced: [UInt8]
        /// The later changes, in order.
        var changes: [Change] = []
        /// Whether the present state of the name, present or absent, survives.
        var isNameSynced: Bool
        var isDeleted = false
        /// The synced content of an earlier file of that name, which may come back.
        var earlier: [UInt8]?
        /// Whether the next sync of the file syncs its directory too, as SQLite does for a new journal.
        var syncsDirectory: Bool
    }

    private static let sector = 512

    private var files: [File] = []
    private var numbers: [String: Int] = [:]

    /// Notes that a file was opened.
    ///
    /// - Parameters:
    ///   - content: what it had before; nil if it was created.
    ///   - isJournal: whether it is a journal or a write-ahead log.
    /// - Returns: its number.
    mutating func open(_ path: String, _ content: [UInt8]?, isJournal: Bool) -> Int {
        if let number = numbers[path] {
            guard files[number].isDeleted else { return number }
            let old = files[number]
            files[number] = File(
                path: path,
                synced: [],
                isNameSynced: false,
                earlier: old.isNameSynced ? nil : old.synced,
                syncsDirectory: isJournal
            )
            return number
        }
        numbers[path] = files.count
        // An empty database file was created just before it was opened.
        let isNew = content?.isEmpty ?? true
        files.append(File(path: path, synced: content ?? [], isNameSynced: !isNew, syncsDirectory: isNew && isJournal))
        return files.count - 1
    }

    mutating func write(_ number: Int, at offset: Int, _ bytes: [UInt8]) {
        files[number].changes.append(.write(offset, bytes))
    }

    mutating func truncate(_ number: Int, to size: Int) { files[number].changes.append(.truncate(size)) }

    mutating func sync(_ number: Int) {
        for change in files[number].changes { Self.apply(change, to: &files[number].synced) { true } }
        files[number].changes = []
        guard files[number].syncsDirectory else { return }
        files[number].syncsDirectory = false
        if let slash = files[number].path.lastIndex(of: "/") { syncDirectory(String(files[number].path[..<slash])) }
    }

    mutating func delete(_ path: String) {
        guard let number = numbers[path], !files[number].isDeleted else { return }
        files[number].isDeleted = true
        files[number].changes = []
        // A name that never was durable does not come back.
        if !files[number].isNameSynced, files[number].earlier == nil { return files[number].isNameSynced = true }
        if let earlier = files[number].earlier { files[number].synced = earlier }
        files[number].isNameSynced = false
    }

    mutating func syncDirectory(_ directory: String) {
        for number in files.indices where files[number].path.hasPrefix(directory + "/") {
            files[number].isNameSynced = true
            files[number].earlier = nil
        }
    }

    /// The files after a power loss, chosen at random; nil for a file that is absent.
    func afterPowerLoss(using generator: inout some RandomNumberGenerator) -> [(path: String, content: [UInt8]?)] {
        // Nothing unsynced, everything, or the first changes and any part of the later ones.
        let kept = [0, 1, 2, 2][Int.random(in: 0..<4, using: &generator)]
        var result: [(path: String, content: [UInt8]?)] = []
        for file in files {
            let hasNewName = file.isNameSynced || Self.chooses(kept, &generator)
            guard hasNewName else {
                result.append((file.path, file.isDeleted ? file.synced : file.earlier))
                continue
            }
            guard !file.isDeleted else {
                result.append((file.path, nil))
                continue
            }
            var content = file.synced
            let whole = kept == 2 ? Int.random(in: 0...file.changes.count, using: &generator) : 0
            for (index, change) in file.changes.enumerated() {
                Self.apply(change, to: &content) { index < whole || Self.chooses(kept, &generator) }
            }
            result.append((file.path, content))
        }
        return result
    }

    private static func chooses(_ kept: Int, _ generator: inout some RandomNumberGenerator) -> Bool {
        kept == 2 ? Bool.random(using: &generator) : kept == 1
    }

    /// Applies the sectors of a change that are chosen.
    private static func apply(_ change: Change, to content: inout [UInt8], if isChosen: () -> Bool) {
        switch change {
        case .truncate(let size):
            guard isChosen() else { return }
            resize(&content, to: size)
        case .write(let offset, let bytes):
            var start = 0
            while start < bytes.count {
                // To the end of the sector in the file.
                let end = min(bytes.count, ((offset + start) / sector + 1) * sector - offset)
                if isChosen() {
                    if content.count < offset + end { resize(&content, to: offset + end) }
                    content.replaceSubrange((offset + start)..<(offset + end), with: bytes[start..<end])
                }
                start = end
            }
        }
    }

    private static func resize(_ content: inout [UInt8], to size: Int) {
        if content.count > size {
            content.removeLast(content.count - size)
        } else {
            content += [UInt8](repeating: 0, count: size - content.count)
        }
    }
}
