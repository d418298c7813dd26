import LarderCoding
import LarderHTTP
import LarderHTTPCache
import LarderStorage
import LarderTime
import Synchronization

/// The disk tier of the pipeline: files as HTTP responses with their variants, and parts of files. Safe from any thread.
///
/// Work that began before `removeAll` writes nothing after it.
final class ImageStore: Sendable {
    let disk: DiskStore?
    let clock: any WallClock
    let partBytesMaximum: Int
    let report: @Sendable (any Error) -> Void
    private let responses: DiskHTTPCacheStorage?
    /// The number of times that everything was erased.
    private let epoch = Mutex(0)

    init(_ configuration: ImagePipeline.Configuration, report: @escaping @Sendable (DiskError) -> Void) {
        disk = configuration.disk
        responses = disk.map { DiskHTTPCacheStorage($0, name: "image", policy: configuration.policy) }
        (clock, partBytesMaximum) = (configuration.clock, configuration.partialBytesMaximum)
        self.report = { report(DiskError($0)) }
    }

    /// The stored responses of a URL.
    func entries(_ key: ImageSourceKey) -> [HTTPCacheEntry] {
        do {
            return try responses?.entries(for: key.storageKey) ?? []
        } catch {
            report(error)
            return []
        }
    }

    /// The file of a response; nil if it is missing or damaged.
    ///
    /// - Throws: if it could not be read now.
    func body(_ entry: HTTPCacheEntry, _ key: ImageSourceKey) throws(DiskError) -> [UInt8]? {
        do {
            let body = try responses?.body(of: entry, for: key.storageKey)
            return body?.count == entry.bodyCount ? body : nil
        } catch {
            report(error)
            throw DiskError(error)
        }
    }

    /// Changes the stored responses of a URL.
    ///
    /// - Parameter body: the file of a response that the change adds.
    func change(
        _ key: ImageSourceKey,
        body: [UInt8]? = nil,
        epoch begun: Int,
        _ change: @Sendable (inout [HTTPCacheEntry]) -> Void
    ) {
        guard let responses else { return }
        do {
            try responses.update(key.storageKey, body: body) { entries in
                if isCurrent(begun) { change(&entries) }
            }
        } catch {
            report(error)
        }
    }

    /// Whether nothing was erased since. Asked within each transaction: `removeAll` raises the number before it erases, so either the
    /// transaction writes nothing, or it is erased.
    func isCurrent(_ begun: Int) -> Bool { epoch.withLock { $0 == begun } }

    /// Removes the response with this content.
    func remove(_ contentID: String, _ key: ImageSourceKey, epoch: Int) {
        change(key, epoch: epoch) { entries in entries.removeAll { $0.bodyID == contentID } }
    }

    func removeAll(epoch next: Int) {
        // Two concurrent calls may arrive here in either order.
        epoch.withLock { $0 = max($0, next) }
        do throws(DiskError) { try disk?.removeAllItems() } catch { report(error) }
    }
}
