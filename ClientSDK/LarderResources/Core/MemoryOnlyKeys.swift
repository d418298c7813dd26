import LarderStorage
import Synchronization

/// The keys that a reader keeps in memory only: nothing is written under them until the cache is closed. Safe from any thread.
///
/// Bounded, and never less strict than before: beyond 4,096 keys their names are recorded instead, and beyond 4,096
/// names everything is kept in memory only.
final class MemoryOnlyKeys: Sendable {
    private struct State {
        var keys: Set<StoredKey> = []
        var names: Set<String> = []
        var isEverything = false
    }

    private static let countMaximum = 4_096
    /// Whether bytes that were removed may still be in the disk's log.
    let hasRemovedBytes = Atomic<Bool>(false)
    private let hasAny = Atomic<Bool>(false)
    private let state = Mutex(State())

    func insert(_ key: StoredKey) {
        state.withLock { state in
            guard !Self.contains(key, state) else { return }
            state.keys.insert(key)
            guard state.keys.count > Self.countMaximum else { return }
            state.names.formUnion(state.keys.map(\.name))
            state.keys = []
            guard state.names.count > Self.countMaximum else { return }
            state.names = []
            state.isEverything = true
        }
        hasAny.store(true, ordering: .releasing)
    }

    func contains(_ key: StoredKey) -> Bool {
        guard hasAny.load(ordering: .acquiring) else { return false }
        return state.withLock { Self.contains(key, $0) }
    }

    private static func contains(_ key: StoredKey, _ state: State) -> Bool {
        state.isEverything || state.keys.contains(key) || state.names.contains(key.name)
    }
}

extension StoredKey {
    /// The type of the entity or the name of the list.
    fileprivate var name: String {
        switch self {
        case .entity(let key): key.type
        case .query(let key): "?" + key.name
        }
    }
}

extension CacheCore {
    /// Removes a value from the disk, and keeps it off the disk from now on. In memory it stays.
    ///
    /// Its bytes are removed from the log too, unless another connection is reading: then the next call for any key
    /// tries again.
    func keepOffDisk(_ key: StoredKey) throws(LarderError) {
        guard let disk else { return }
        memoryOnly.insert(key)
        var update = CacheUpdate()
        update.steps = [.keepOffDisk(key)]
        let commit = try carryOut(update)
        announce(commit)
        if commit.hasLeftDisk { memoryOnly.hasRemovedBytes.store(true, ordering: .relaxed) }
        guard memoryOnly.hasRemovedBytes.load(ordering: .relaxed) else { return }
        do {
            if try disk.emptyLog() { memoryOnly.hasRemovedBytes.store(false, ordering: .relaxed) }
        } catch {
            throw LarderError(error)
        }
    }
}
