import Foundation
public import LarderResources
public import LarderStorage
import LarderTLS
public import LarderTime

extension DiskStore.EncryptingTransform {
    /// The key that a secret store keeps for the app's data; it is made and saved on the first use.
    ///
    /// First starts at the same time, also of several processes, get the same key: they wait for each other by a lock in `directory`.
    ///
    /// - Parameters:
    ///   - store: a store of the system, such as a keyring. Files beside the data protect nothing.
    ///   - directory: the directory of the data, such as that of all accounts (`APIClient.init`). It is made if it does not exist.
    ///   - name: the name of the secret.
    ///   - clock: used for the wait.
    /// - Throws: the error of the store; `.storage` if the directory cannot be used, or if the saved secret is no key: it is left as it is;
    ///   `.cancelled`.
    public static func key(
        in store: any SecretStore,
        forDataIn directory: String,
        named name: String = "storage-key",
        clock: any MonotonicClock = SystemMonotonicClock()
    ) async throws(LarderError) -> [UInt8] {
        if let saved = try await saved(in: store, name) { return saved }
        let lock = FileProcessLock(path: directory + "/storage-key.lock")
        do {
            try FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
            while !(try lock.take()) { try await clock.sleep(until: clock.uptime + .milliseconds(20)) }
        } catch let error as CancellationError {
            throw LarderError(.cancelled, "The task that waits for the key was cancelled.", cause: error)
        } catch { throw LarderError(.storage, "The key cannot be made: \(error)", cause: error) }
        defer { lock.release() }
        if let saved = try await saved(in: store, name) { return saved }
        let made: [UInt8]
        do throws(TLSError) { made = try makeKey() } catch { throw LarderError(.storage, error.description) }
        try await store.save(made, as: name)
        return made
    }

    private static func saved(in store: any SecretStore, _ name: String) async throws(LarderError) -> [UInt8]? {
        let saved = try await store.load(name)
        if let count = saved?.count, count != keyBytes {
            throw LarderError(.storage, "The secret '\(name)' has \(count) bytes and is no key of \(keyBytes) bytes.")
        }
        return saved
    }
}
