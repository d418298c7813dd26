/// A storage of responses for the HTTP cache. Safe from any thread; calls are synchronous.
///
/// A storage may lose entries at any time, but must not return content that was stored under another name.
package protocol HTTPCacheStorage: Sendable {
    /// Whether its calls may wait for a disk. If so, the cache makes those of its asynchronous functions on threads of its own. The
    /// default is true.
    var mayBlock: Bool { get }

    func entries(for key: String) throws -> [HTTPCacheEntry]

    /// Returns the content of an entry; nil if it was lost.
    func body(of entry: HTTPCacheEntry, for key: String) throws -> [UInt8]?

    /// Updates the entries of a key atomically.
    ///
    /// Content without an entry is removed, and a key without entries too.
    ///
    /// - Parameters:
    ///   - key: the key of the cache, as in `entries`.
    ///   - body: the content of new entries with its `bodyID`; nil if there are none.
    ///   - change: changes the entries. May be called more than once.
    func update(_ key: String, body: [UInt8]?, _ change: @Sendable (inout [HTTPCacheEntry]) -> Void) throws

    /// Removes everything.
    func removeAll() throws
}

extension HTTPCacheStorage {
    /// True: the storage may wait for a disk.
    package var mayBlock: Bool { true }
}
