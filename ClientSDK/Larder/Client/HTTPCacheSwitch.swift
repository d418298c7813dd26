import LarderHTTPCache
import LarderResources
import LarderStorage
import Synchronization

/// Whether the HTTP cache is used. It does not see changes while it is off, so what it had stored is removed before it is used again.
/// Safe from any thread.
final class HTTPCacheSwitch: Sendable {
    /// Its presence in the account's store means that stored responses may be outdated.
    private static let key = "larder.httpCache.off"

    private struct State {
        /// What was applied last; nil: nothing, or it failed.
        var isOn: Bool?
        /// Whether it was off in this process since the last removal, whatever became of the mark.
        var hasBeenOff = false
    }

    private let cache: LarderCache
    private let current = Atomic<Bool>(false)
    private let state = Mutex(State())

    init(_ cache: LarderCache) { self.cache = cache }

    var isOn: Bool { current.load(ordering: .acquiring) }

    /// Turns the cache off or on. If that fails, it is off, and the failure is reported. Called by one task after another.
    ///
    /// No lock is held meanwhile, because a damaged store calls the app's code.
    func set(_ isOn: Bool, _ http: HTTPCache) {
        let (isNew, hasBeenOff) = state.withLock { state in
            guard state.isOn != isOn else { return (false, false) }
            state.isOn = nil
            state.hasBeenOff = state.hasBeenOff || !isOn
            return (true, state.hasBeenOff)
        }
        guard isNew else { return }
        current.store(false, ordering: .releasing)
        // What was asked before may miss a change while it is off.
        http.abandonExchanges()
        do {
            if !isOn {
                try mark([1])
            } else if try cache.outboxDisk?.metadata(Self.key) != nil || hasBeenOff {
                try http.configuration.storage.removeAll()
                try mark(nil)
            }
            state.withLock { $0 = State(isOn: isOn, hasBeenOff: !isOn) }
            current.store(isOn, ordering: .releasing)
        } catch {
            cache.configuration.onEvent(.storageFailed(LarderError(error)))
        }
    }

    /// Stores the mark, which survives a clearing of the content; nil removes it.
    private func mark(_ bytes: [UInt8]?) throws {
        try cache.outboxDisk?.write { transaction in try transaction.setMetadata(bytes, for: Self.key) }
    }
}
