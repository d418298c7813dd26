import Foundation
import LarderResources
import LarderStorage

/// The stores of what can be fetched again, beside that of the cache. None is opened before it is used; a sign-out also erases those that
/// an earlier version of the app has filled and this one does not use.
struct ContentStores {
    let images: DiskStore?
    let http: DiskStore?
    /// Those of a version without a purgeable directory, that of the cache included; empty if this one has none.
    private var earlier: [DiskStore?] = []

    /// - Parameters:
    ///   - directories: the directory of the account, and that of what the system may remove, if the app has chosen one.
    init(
        _ configuration: APIClient.Configuration,
        _ settings: CacheConfiguration,
        in directories: [String]
    ) throws(LarderError) {
        let purgeable = directories.count > 1 ? directories[1] : nil
        images = try APIClient.store("images", configuration.imageBytesMaximum, settings, in: purgeable)
        http = try APIClient.store("http", Int64(configuration.httpCacheBytesMaximum), settings, in: purgeable)
        guard purgeable != nil, case .disk(var values) = settings.storage else { return }
        for name in ["images", "http"] { earlier.append(try APIClient.store(name, nil, settings, in: directories[0])) }
        (values.directory, values.opensLate) = (directories[0], true)
        do { earlier.append(try DiskStore(values)) } catch { throw LarderError(error) }
    }

    var all: [DiskStore?] { [images, http] + earlier }
}

extension APIClient {
    /// Puts cached values into the purgeable directory of the account, and leaves the outbox where it is.
    static func moveContent(of settings: inout CacheConfiguration, to purgeable: String?) {
        guard let purgeable, case .disk(var values) = settings.storage else { return }
        let outbox = values.outboxDirectory ?? values.directory + "/outbox"
        values.outboxDirectory = outbox
        values.directory = purgeable + "/data"
        values.restartsWhileExists = outbox + "/store.lock"
        settings.storage = .disk(values)
    }

    /// Marks a directory as a cache (https://bford.info/cachedir/), which programs that make backups leave out. A mark that cannot be written
    /// is not worth a failure: the store reports what is wrong with the directory.
    static func tag(_ directory: String) {
        let path = directory + "/CACHEDIR.TAG"
        guard !FileManager.default.fileExists(atPath: path) else { return }
        try? FileManager.default.createDirectory(
            atPath: directory,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        let text = "Signature: 8a477f597d28d172789f06886806bc55\n# This directory holds cached data of an app.\n"
        try? Data(text.utf8).write(to: URL(fileURLWithPath: path))
    }

    /// The directories of the account.
    static func directories(_ settings: CacheConfiguration, _ purgeable: String?) -> [String] {
        guard case .disk(let values) = settings.storage else { return [] }
        return [values.directory, purgeable].compactMap { $0 }
    }

    /// The place of files to upload, beside the outbox; nil if the cache has no directory.
    static func uploadFiles(_ settings: CacheConfiguration, _ bytesMaximum: Int64) -> UploadFiles? {
        guard case .disk(let values) = settings.storage else { return nil }
        let directory = (values.outboxDirectory ?? values.directory + "/outbox") + "/uploads"
        return UploadFiles(directory: directory, bytesMaximum: bytesMaximum, of: values)
    }

    /// Opens a store of what can be fetched again, beside that of the cache or in the purgeable directory. It has the payload transform
    /// of the cache, and begins anew if the system removes its directory while the account is there.
    ///
    /// - Parameter bytesMaximum: nil: as that of the cache.
    /// - Returns: nil if the cache has no directory.
    static func store(
        _ name: String,
        _ bytesMaximum: Int64?,
        _ settings: CacheConfiguration,
        in purgeable: String?
    ) throws(LarderError) -> DiskStore? {
        guard case .disk(let values) = settings.storage else { return nil }
        let parent = purgeable ?? values.directory
        var store = DiskStore.Configuration(directory: "\(parent)/\(name)", clock: settings.wallClock)
        store.bytesMaximum = bytesMaximum ?? values.bytesMaximum
        store.restartsWhileExists = values.restartsWhileExists ?? values.directory + "/store.lock"
        store.transform = values.transform
        store.mayBlock = values.mayBlock
        if values.sharesFaults { store.faults = values.faults }
        // Opening is deferred so that the first screen with text is not delayed.
        store.opensLate = true
        let onEvent = settings.onEvent
        store.onEvent = { onEvent(.disk($0)) }
        do { return try DiskStore(store) } catch { throw LarderError(error) }
    }
}
