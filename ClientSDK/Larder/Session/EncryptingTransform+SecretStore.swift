public import LarderResources
public import LarderStorage
import LarderTLS

extension DiskStore.EncryptingTransform {
    /// The key that a secret store keeps for the app's data; it is made and saved on the first use.
    ///
    /// - Parameters:
    ///   - store: a store of the system, such as a keyring. Files beside the data protect nothing.
    ///   - name: the name of the secret.
    /// - Throws: the error of the store; `.storage` if the saved secret is no key: it is left as it is.
    public static func key(in store: any SecretStore, named name: String = "storage-key") async throws(LarderError)
        -> [UInt8]
    {
        if let saved = try await store.load(name) {
            guard saved.count == keyBytes else {
                throw LarderError(
                    .storage,
                    "The secret '\(name)' has \(saved.count) bytes and is no key of \(keyBytes) bytes."
                )
            }
            return saved
        }
        let made: [UInt8]
        do throws(TLSError) { made = try makeKey() } catch { throw LarderError(.storage, error.description) }
        try await store.save(made, as: name)
        return made
    }
}
