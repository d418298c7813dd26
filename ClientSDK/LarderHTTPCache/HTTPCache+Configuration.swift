public import LarderHTTP
public import LarderStorage
public import LarderTime
package import LarderTransport

extension HTTPCache {
    /// The storage, policy and environment of a cache.
    public struct Configuration: Sendable {
        /// The storage of responses.
        package var storage: any HTTPCacheStorage
        /// The choices that RFC 9111 leaves to a cache.
        public var policy = HTTPCache.Policy()
        /// Corrects the fields of a response to a URL before the cache reads and stores them. Callers see the corrected fields.
        /// It gets those of errors too: a lifetime that it states makes them cacheable.
        public var correctFields: @Sendable (_ fields: inout Fields, _ url: String) -> Void = { _, _ in }
        /// The source of the current time.
        public var clock: any WallClock
        /// Whether the device is offline. If true, no request is sent and stale responses are used unless the server
        /// forbade it. Called for each `GET` and `HEAD`, from any thread.
        public var isOffline: @Sendable () -> Bool = { false }
        /// Called for each `GET` and `HEAD` hop with what the cache did for it, from any thread without a lock.
        package var onEvent: @Sendable (TransportRequest, HTTPCache.Event) -> Void = { _, _ in }
        /// Called when the storage failed, from any thread without a lock. The response is returned anyway.
        public var onStorageFailure: @Sendable (any Error) -> Void = { _ in }

        /// Creates a configuration.
        ///
        /// - Parameters:
        ///   - store: keeps the responses, beside other data; several processes may share it. Nil: they are kept in memory, at most 16 MiB.
        ///   - clock: the source of the current time.
        public init(store: DiskStore? = nil, clock: any WallClock = SystemWallClock()) {
            self.init(
                storage: store.map { DiskHTTPCacheStorage($0) }
                    ?? DiskHTTPCacheStorage(inMemory: 16 << 20, clock: clock),
                clock: clock
            )
        }

        package init(storage: any HTTPCacheStorage, clock: any WallClock = SystemWallClock()) {
            self.storage = storage
            self.clock = clock
        }
    }
}

extension HTTPCache {
    /// What the cache did for a request. `bytes` counts the content that was not transferred.
    package enum Event: Sendable, Hashable {
        /// A stored response was served; `isStale` if it was not fresh.
        case hit(bytes: Int, isStale: Bool)
        /// The server is asked.
        case miss
        /// The server has confirmed a stored response.
        case revalidated(bytes: Int)
        /// The request joined an equal one in flight.
        case merged
    }
}
