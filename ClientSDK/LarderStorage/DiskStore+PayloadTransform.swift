extension DiskStore {
    /// Transforms payloads on their way to the disk and back: compression or encryption.
    ///
    /// Called during reads and writes, on any thread: it must not block or call the store. Keys, versions, ETags and times are
    /// stored untransformed.
    public protocol PayloadTransform: Sendable {
        /// The name of the transform and its parameters (not its secrets). Items stored under another name are not read.
        var identifier: String { get }

        /// Encodes a payload for storage. An error fails the write.
        func encode(_ payload: [UInt8]) throws -> [UInt8]

        /// Decodes a stored payload. An error makes the read a miss; the item is reported and removed.
        func decode(_ stored: [UInt8]) throws -> [UInt8]
    }
}
