import LarderHTTPCache
import LarderResources
import LarderStorage
import Synchronization

/// Whether the HTTP cache is used. It does not see changes while it is off, so what it had stored is removed before it is used again.
/// Safe from any thread.
final class HTTPCacheSwitch: Sendable {
    /// Its presence in the account's store means that stored responses may be outdated.
    private static let key = "larder.httpCache.off"

    private enum State {
        /// The flags have not been applied, or could not be.
        case unknown
        case on
        /// The mark is stored.
        case off
    }

    private let cache: LarderCache
    private let current = Atomic<Bool>(false)
    private let state = Mutex(State.unknown)

    init(_ cache: LarderCache) { self.cache = cache }

    var isOn: Bool { current.load(ordering: .acquiring) }

    /// Turns the cache off or on. If that fails, it is off, and the failure is reported.
    func set(_ isOn: Bool, _ http: HTTPCache) {
        let failure = state.withLock { state -> LarderError? in
            switch (state, isOn) {
            case (.on, true), (.off, false): return nil
            default: break
            }
            let wasOff = state == .off
            state = .unknown
            current.store(false, ordering: .releasing)
            // What was asked before may miss a change while it is off.
            http.abandonExchanges()
            do {
                guard isOn else {
                    try mark([1])
                    state = .off
                    return nil
                }
                if try cache.outboxDisk?.metadata(Self.key) != nil || wasOff {
                    try http.configuration.storage.removeAll()
                    try mark(nil)
                }
                state = .on
                current.store(true, ordering: .releasing)
                return nil
            } catch {
                return LarderError(error)
            }
        }
        if let failure { cache.configuration.onEvent(.storageFailed(failure)) }
    }

    /// Stores the mark, which survives a clearing of the content; nil removes it.
    private func mark(_ bytes: [UInt8]?) throws {
        try cache.outboxDisk?.write { transaction in try transaction.setMetadata(bytes, for: Self.key) }
    }
}
