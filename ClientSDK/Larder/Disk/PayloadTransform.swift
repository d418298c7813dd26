/// Changes payloads on their way to the disk and back: compression, encryption.
///
/// Called while the store is at work, from any thread: it must neither wait for long nor call the store. Keys, versions, ETags
/// and times are stored as they are; a caller who must hide them too hides them in the payload.
public protocol PayloadTransform: Sendable {
    /// Names the transform and its parameters (not its secrets). What was stored under another name is not read.
    var identifier: String { get }

    /// What is stored for a payload. To throw fails the write.
    func encode(_ payload: [UInt8]) throws -> [UInt8]

    /// The payload from what was stored. To throw makes it a miss: it is reported and removed.
    func decode(_ stored: [UInt8]) throws -> [UInt8]
}
