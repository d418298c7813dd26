public import LarderResources
import LarderStorage

/// A place for the tokens of one account: a file, a keychain, a secret service.
///
/// The standard is a file with mode 0600 in the account's directory, written atomically, synced, and encoded with the store's payload
/// transform. An adapter for another place is a few lines:
///
///     struct Keyring: SecretStore {
///         let account: String
///
///         func load(_ name: String) async throws(LarderError) -> [UInt8]? {
///             do { return try await keyring.lookup(service: "my.app", account: account, name) } catch {
///                 throw LarderError(.storage, "The keyring cannot be read. Unlock it.", cause: error)
///             }
///         }
///
///         func save(_ secret: [UInt8], as name: String) async throws(LarderError) { … }
///
///         func delete(_ name: String) async throws(LarderError) { … }
///     }
///
///     configuration.secrets = { Keyring(account: $0) }
///
/// A client calls it from any task, one call at a time. Several processes of one account use one place: a process that renews the tokens
/// reads what another one has saved. Errors are `LarderError`s with the code `.storage`. After a failed `load` the user is not signed
/// out, and nothing is replaced; after a failed `save` the new tokens are not used.
public protocol SecretStore: Sendable {
    /// The saved bytes; nil if there are none.
    func load(_ name: String) async throws(LarderError) -> [UInt8]?

    /// Saves at most 64 KiB, replacing what has the name. When it returns they survive the death of the process; a later `load` gets
    /// these bytes or the old ones, and never a part.
    func save(_ secret: [UInt8], as name: String) async throws(LarderError)

    /// Removes what has the name. It is no error if there is nothing.
    func delete(_ name: String) async throws(LarderError)
}

/// Secrets in files of the account's directory.
struct FileSecretStore: SecretStore {
    let disk: DiskStore
    let core: CacheCore

    func load(_ name: String) async throws(LarderError) -> [UInt8]? {
        try await core.changing { () throws(LarderError) in
            do { return try disk.secret(name) } catch { throw LarderError(error) }
        }
    }

    func save(_ secret: [UInt8], as name: String) async throws(LarderError) { try await set(secret, name) }

    func delete(_ name: String) async throws(LarderError) { try await set(nil, name) }

    private func set(_ secret: [UInt8]?, _ name: String) async throws(LarderError) {
        try await core.changing { () throws(LarderError) in
            do { try disk.setSecret(secret, for: name) } catch { throw LarderError(error) }
        }
    }
}
