import LarderSQLite

/// Secrets in files beside the database, so that a copy of the database has none.
extension DiskStore {
    private static let secretBytesMaximum = 64 << 10

    /// The bytes of a secret; nil if there is none.
    ///
    /// - Parameter name: letters, digits and hyphens.
    /// - Throws: `.cannotOpen` if another client has made a store in place of this one, which was erased; `.transform` if they cannot be
    ///   decoded, `.inputOutput` if the file cannot be read.
    package func secret(_ name: String) throws(DiskError) -> [UInt8]? {
        guard !context.isReplaced else { throw hasVanished }
        let path = path(ofSecret: name)
        guard context.files.exists(path) else { return nil }
        guard let stored = context.files.read(path, first: 2 * Self.secretBytesMaximum) else {
            // Another process may have removed it meanwhile.
            guard context.files.exists(path) else { return nil }
            throw DiskError(.inputOutput, "\(path) cannot be read. Check its permissions.")
        }
        do { return try opened(stored, as: name) } catch {
            guard context.seal.transform != nil else { throw error }
            // It was written without the transform, or with an older key: opening the store encodes it again.
            try withConnection { _ in }
            guard let stored = context.files.read(path, first: 2 * Self.secretBytesMaximum) else { return nil }
            return try opened(stored, as: name)
        }
    }

    /// Writes a secret atomically, synced with its directory; nil removes it.
    ///
    /// - Throws: `.cannotOpen` if the store was erased; `.tooLarge`, `.transform`, or the disk's error. Then the old one is unchanged.
    package func setSecret(_ secret: [UInt8]?, for name: String) throws(DiskError) {
        if let secret, secret.count > Self.secretBytesMaximum {
            throw DiskError(
                .tooLarge,
                "A secret of \(secret.count) bytes: at most \(Self.secretBytesMaximum) are taken."
            )
        }
        let stored: [UInt8]? = if let secret { try sealed(secret, as: name) } else { nil }
        let path = path(ofSecret: name)
        let files = context.files
        if stored == nil, !files.exists(path), !files.exists(path + ".new") { return }
        do {
            // Erasing takes this lock too: a secret is not written after it.
            try files.locked(context.pathOfLock, makes: false) {
                try requireExistence()
                if let stored {
                    try files.write(stored, to: path, temporary: path + ".new")
                } else {
                    try files.remove(path)
                    // That of a write that was interrupted.
                    try files.remove(path + ".new")
                }
                try files.syncDirectory(context.configuration.directory)
            }
        } catch {
            throw DiskError(error)
        }
    }

    /// Begins as all files that `erase` removes.
    static let secretPrefix = "store.secret-"

    private func path(ofSecret name: String) -> String {
        "\(context.configuration.directory)/\(Self.secretPrefix)\(name)"
    }
}
