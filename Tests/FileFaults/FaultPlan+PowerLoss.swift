import CSQLite
import Glibc
package import LarderSQLite

/// Power loss of the machine: everything that was not synced may be lost.
///
/// Files of databases are covered. Files that a store writes itself are reported as synced when they are written.
extension FaultPlan {
    /// Kills the process and leaves of its database files what was synced, and a random part of the rest.
    ///
    /// No database may be open in the plan's file system. The plan must have been made with `recordsSyncs`.
    ///
    /// - Throws: if a file cannot be written.
    package func losePower(using generator: inout some RandomNumberGenerator) throws(SQLiteError) {
        kill()
        guard let unsynced = withUnsynced({ $0 }) else {
            preconditionFailure("A power loss needs a fault plan that records syncs.")
        }
        for (path, content) in unsynced.afterPowerLoss(using: &generator) {
            // Shared memory is gone after a restart.
            if path.hasSuffix("-wal") { unsafe unlink(path.dropLast(4) + "-shm") }
            guard let content else {
                unsafe unlink(path)
                continue
            }
            let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw Self.error(SQLITE_CANTOPEN) }
            defer { close(descriptor) }
            var written = 0
            while written < content.count {
                let count = unsafe content.withUnsafeBytes { raw in
                    unsafe raw.baseAddress.map {
                        unsafe pwrite(descriptor, $0 + written, content.count - written, off_t(written))
                    } ?? 0
                }
                guard count > 0 else { throw Self.error(SQLITE_CANTOPEN) }
                written += count
            }
        }
    }

    /// Reports the sync of a directory outside SQLite.
    package func syncedDirectory(_ path: String) { withUnsynced { $0.syncDirectory(path) } }

    /// The number of a file that was opened; -1 if syncs are not recorded.
    func opened(_ path: String, _ content: () -> [UInt8]?, isJournal: Bool) -> Int {
        withUnsynced { $0.open(path, content(), isJournal: isJournal) } ?? -1
    }

    /// The content of a file; nil if it does not exist.
    static func content(of path: String) -> [UInt8]? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var content: [UInt8] = []
        while true {
            let chunk = unsafe [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                let read = unsafe pread(descriptor, buffer.baseAddress, 1 << 16, off_t(content.count))
                count = max(0, read)
            }
            guard !chunk.isEmpty else { return content }
            content += chunk
        }
    }
}
