extension DiskStore {
    /// Transforms what is stored on its way to the disk and back: compression or encryption.
    ///
    /// It covers the payloads of entities and records, ETags, the cursors and details of lists and of their pages, operations of the
    /// outbox with all of their texts and rejections, metadata values and change tokens. Not covered,
    /// because rows are found by them, are the keys of entities, lists, records and metadata, and versions, times, states, sizes and
    /// numbers of rows: use a digest for a key that is secret. Checksums of rows have no key: who has the file can check a cursor that
    /// he guesses.
    ///
    /// A store that is opened with another transform or key than it was written with loses its cached content, and keeps the
    /// operations of its outbox (`DiskStore.Event.transformChanged`). Bytes that are decoded to anything but what was encoded are
    /// detected by a checksum that is encoded with them; a cipher should be authenticated all the same.
    ///
    /// Called during reads and writes, on any thread: it must not block or call the store.
    public protocol PayloadTransform: Sendable {
        /// The name of the transform and its parameters (not its secrets). Items stored under another name are not read.
        var identifier: String { get }

        /// Encodes a payload for storage. An error fails the write.
        func encode(_ payload: [UInt8]) throws -> [UInt8]

        /// Decodes a stored payload. An error makes the read a miss. If others can be decoded, the item is reported and removed.
        func decode(_ stored: [UInt8]) throws -> [UInt8]

        /// Whether a stored payload, which can be decoded, has the key that is encoded with now. If the store's own mark has an older one, the
        /// outbox, metadata and secrets are encoded again when the store is opened. True by default.
        func isCurrent(_ stored: [UInt8]) -> Bool
    }
}

extension DiskStore.PayloadTransform {
    /// True: there is one key.
    public func isCurrent(_ stored: [UInt8]) -> Bool { true }
}
