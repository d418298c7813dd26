import Synchronization

/// Replies to reads of the present state, by the target and the credentials of their requests.
///
/// An entry carries the stamp of the state that it was built from, taken before that state was read. It is served only while
/// the stamp is current, so a reply older than the last acknowledged write cannot be served (`World.stamp`). The first entry of a newer
/// state, or one that exceeds the bound, removes all others. Safe from any thread.
final class ResponseCache: Sendable {
    /// A read of one state of the world.
    struct Version {
        let target: String
        let credentials: String?
        /// Taken before the state is read: an entry with an older stamp is only rebuilt once more.
        let stamp: UInt64
    }

    struct Entry {
        let representation: Representation
        /// The session of the credentials.
        let session: SessionRow?
    }

    private struct State {
        var stamp: UInt64 = 0
        /// By target.
        var entries: [String: Replies] = [:]
        var bytes = 0
    }

    /// The replies to requests with one target.
    private struct Replies {
        /// That for everybody, whatever the credentials.
        var common: Entry?
        var personal: [String?: Entry] = [:]
    }

    private let state = Mutex(State())
    /// The maximum size of all entries in bytes of keys, heads and bodies. 0 disables the cache.
    let bytesMaximum: Int

    init(bytesMaximum: Int) { self.bytesMaximum = bytesMaximum }

    /// The reply that was built from the state with the version's stamp.
    func find(_ version: Version) -> Entry? {
        state.withLock { state in
            guard state.stamp == version.stamp, let replies = state.entries[version.target] else { return nil }
            return replies.common ?? replies.personal[version.credentials]
        }
    }

    /// Stores a reply that was built after the version's stamp was taken.
    ///
    /// - Parameters:
    ///   - session: that of the credentials.
    ///   - isCommon: whether the reply depends on no credentials.
    func store(
        _ representation: Representation,
        of session: SessionRow? = nil,
        for version: Version,
        isCommon: Bool = false
    ) {
        let cost = version.target.utf8.count + (version.credentials?.utf8.count ?? 0) + representation.byteCount
        guard cost <= bytesMaximum / 4 else { return }
        state.withLock { state in
            guard version.stamp >= state.stamp else { return }
            if version.stamp > state.stamp || state.bytes + cost > bytesMaximum { state = State(stamp: version.stamp) }
            let entry = Entry(representation: representation, session: session)
            var replies = state.entries[version.target] ?? Replies()
            // Two loops have made it at once.
            guard (isCommon ? replies.common : replies.personal[version.credentials]) == nil else { return }
            if isCommon { replies.common = entry } else { replies.personal[version.credentials] = entry }
            state.entries[version.target] = replies
            state.bytes += cost
        }
    }
}
