import LarderEvents
import LarderImages
public import LarderResources
import LarderStorage
import Synchronization

extension APIClient {
    /// Signs out: ends all tasks, erases the account's data on this device, and then revokes the tokens at the server if it can be reached.
    ///
    /// Unsent changes are lost; see `Outbox.drain(within:)`. Nothing is left on the device when the revocation begins, which can take as long
    /// as a request. From now on changes are rejected with `.closed`, and `http` sends without credentials. A call while another one is
    /// in progress shares its result, and a call after a success does nothing: another client may have opened the account's directory. A call
    /// after such a client has followed a sign-out elsewhere erases nothing of it.
    /// A cancelled caller no longer waits; the sign-out is carried out nevertheless.
    ///
    /// - Throws: `.storage` if files could not be removed: call it again, or open the account's next client, which goes on before it
    ///   opens anything. It does not if the disk could not even store that the sign-out has begun (`CacheEvent.storageFailed`).
    ///   `.cancelled`.
    public func signOut() async throws(LarderError) {
        let (flight, isNew) = leaving.withLock { leaving in
            if let running = leaving { return (running, false) }
            // No holder leaves it, so it is not cancelled with the last waiter.
            let flight = SingleFlight<Void, Void, LarderError>(())
            leaving = flight
            return (flight, true)
        }
        if isNew { flight.run(Task { flight.finish(await self.carryOutSignOut()) }) }
        try await flight.wait()
    }

    private func carryOutSignOut() async -> Result<Void, LarderError> {
        live?.stop()
        services.end()
        images.close()
        cache.outbox.end()
        let isReplaced = cache.outboxDisk?.isReplaced ?? false
        let marker = isReplaced ? nil : cache.disk.flatMap { Self.signOutMarker(accountDirectories, $0.configuration) }
        do { try marker?.set() } catch {
            // What can be removed is removed nevertheless.
            cache.configuration.onEvent(.storageFailed(LarderError(error)))
        }
        let (token, unforgotten) = await session.forget(isFinal: true)
        images.clearMemory()
        cache.close()
        if !isReplaced { await http.cache?.removeAll() }
        // The account's directory contains the others and is the last.
        let left = await cache.core.changing { () async -> LarderError? in
            // Nothing is left of this account but what its stores have in memory.
            if isReplaced { return await Self.erase(nil, [cache.disk], [], nil) }
            return await Self.erase(
                uploading.files,
                stores.all + [cache.disk],
                accountDirectories,
                unforgotten == nil ? marker : nil
            )
        }
        if let token { await session.revoke(token) }
        guard let failure = unforgotten ?? left else { return .success(()) }
        leaving.withLock { $0 = nil }
        return .failure(failure)
    }

    /// Removes everything of an account. Each store is tried, whatever becomes of the others; the marker is removed if nothing is left.
    ///
    /// - Returns: the first failure.
    private static func erase(
        _ uploads: UploadFiles?,
        _ stores: [DiskStore?],
        _ directories: [String],
        _ marker: DiskMarker?
    ) async -> LarderError? {
        var failure: LarderError?
        do throws(LarderError) { try await uploads?.erase() } catch { failure = error }
        func attempt(_ body: () throws -> Void) {
            do { try body() } catch { failure = failure ?? LarderError(error) }
        }
        for case let store? in stores { attempt { try store.erase() } }
        attempt { try eraseRecorder(in: directories.first) }
        if failure == nil { attempt { try marker?.remove() } }
        for directory in directories { attempt { try DiskStore.removeEmptyDirectory(directory) } }
        return failure
    }

    /// Finishes a sign-out that was interrupted, before anything of the account is opened.
    ///
    /// - Parameters:
    ///   - directories: the directories of the account.
    ///   - settings: the settings of the cache that will be opened.
    ///   - secrets: the place of the tokens; nil: the account's directory.
    /// - Throws: `.storage` if something could not be removed.
    static func finishSignOut(
        _ directories: [String],
        _ settings: CacheConfiguration,
        _ secrets: (any SecretStore)?
    ) async throws(LarderError) {
        guard case .disk(var values) = settings.storage, let marker = signOutMarker(directories, values), marker.isSet
        else { return }
        try await secrets?.delete(BearerSession.secretName)
        values.opensLate = true
        let content: DiskStore
        do { content = try DiskStore(values) } catch { throw LarderError(error) }
        let stores = try ContentStores(Configuration(), settings, in: directories)
        let uploads = uploadFiles(settings, 0)
        let disk = values.mayBlock ? DiskExecutor(threadsMaximum: 1) : nil
        let failure = await withTaskExecutorPreference(disk) {
            await erase(uploads, stores.all + [content], directories, marker)
        }
        if let failure { throw failure }
    }

    /// The file that says that a sign-out has begun and has not removed everything yet; nil if the account has no directory of its own.
    private static func signOutMarker(_ directories: [String], _ store: DiskStore.Configuration) -> DiskMarker? {
        directories.first.map { DiskMarker("signing-out", in: $0, of: store) }
    }
}
