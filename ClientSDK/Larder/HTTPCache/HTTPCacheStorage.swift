/// Where the HTTP cache keeps responses. Safe from any thread; every call is done when it returns.
///
/// A storage may lose anything at any time, but it must not mix: content that it gives is the content that was stored under
/// that name.
public protocol HTTPCacheStorage: Sendable {
    /// What is stored under a key, without content.
    func entries(for key: String) throws -> [HTTPCacheEntry]

    /// The content of an entry; nil where it is gone.
    func body(of entry: HTTPCacheEntry, for key: String) throws -> [UInt8]?

    /// Changes what is stored under a key, as one step that no other call falls into.
    ///
    /// Content that no entry names after the change is removed; none left: the key too.
    ///
    /// - Parameters:
    ///   - body: the content of the entries that name it with its `bodyID`, if one of them is new.
    ///   - change: it may be called more than once, and on a store that is layered, once for each layer.
    func update(_ key: String, body: [UInt8]?, _ change: @Sendable (inout [HTTPCacheEntry]) -> Void) throws

    /// The keys under which something is stored. Cost: it may look at all of them.
    func keys() throws -> [String]

    /// Removes everything.
    func removeAll() throws
}
