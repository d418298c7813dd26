import LarderStorage

extension LarderCache {
    /// The most values that `heldValues` returns.
    package static let heldValuesMaximum = 200
    /// The most characters of a value that are shown.
    private static let textMaximum = 2_000

    /// The values that were asked for last, newest first. A value that has left memory is read from disk.
    ///
    /// - Parameter shown: the keys of values whose text is wanted.
    package func heldValues(showing shown: Set<String>) async -> [HeldValue] {
        await core.reading {
            core.nodes.all.suffix(Self.heldValuesMaximum).reversed().map { node in
                node.held(textMaximum: shown.contains(node.key.description) ? Self.textMaximum : 0)
            }
        }
    }

    /// Marks the values under a key as stale, as an event would.
    ///
    /// - Throws: `.invalidArgument` if none was asked for; `.storage`.
    package func invalidate(held key: String) async throws(LarderError) {
        let keys = try nodes(key).map(\.storedKey)
        try await update { update in for key in keys { update.invalidate(key) } }
    }

    /// Asks the source for the values under a key, as a person's refresh would.
    ///
    /// - Throws: `.invalidArgument` if none was asked for; the error of the request.
    package func refresh(held key: String) async throws(LarderError) {
        for node in try nodes(key) { try await node.refreshHeld() }
    }

    private func nodes(_ key: String) throws(LarderError) -> [any AnyNode] {
        let nodes = core.nodes.all.filter { $0.key.description == key }
        guard nodes.isEmpty else { return nodes }
        throw LarderError(.invalidArgument, "Nothing was asked for under \"\(key)\".")
    }
}
