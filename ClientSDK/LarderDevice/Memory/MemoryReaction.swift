/// Reduces the memory use of one component: a cache, an image pipeline, a decoder.
///
/// The guard calls `stop` of all reactions before `release` of any, so that running loads do not refill what was released. It makes
/// one call at a time, in the order of registration, holding no lock, on the thread that reported the pressure: both functions
/// should return quickly. While pressure lasts they are called again with the same limits.
package struct MemoryReaction: Sendable {
    /// The name of the component, for debugging.
    package let name: String
    let measure: @Sendable () -> Usage
    let stop: @Sendable (MemoryLimits) -> Int
    let release: @Sendable (MemoryLimits) -> Int

    /// What a component holds and does.
    package struct Usage: Sendable, Hashable {
        /// The bytes in its caches.
        package var cost: Int
        /// The number of its HTTP requests in flight.
        package var requests: Int
        /// The number of its waiting or running loads of pictures.
        package var loads: Int

        package init(cost: Int = 0, requests: Int = 0, loads: Int = 0) {
            self.cost = cost
            self.requests = requests
            self.loads = loads
        }
    }

    /// - Parameters:
    ///   - name: names the reaction in reports.
    ///   - measure: returns what the component holds. Called when the pressure rises, before `stop` of any component.
    ///   - stop: cancels loads and limits concurrency and quality; returns the number of cancelled loads.
    ///   - release: shrinks to the limits or allows growth again; returns about how many bytes were freed.
    package init(
        _ name: String,
        measure: @escaping @Sendable () -> Usage = { Usage() },
        stop: @escaping @Sendable (MemoryLimits) -> Int = { _ in 0 },
        release: @escaping @Sendable (MemoryLimits) -> Int = { _ in 0 }
    ) {
        self.name = name
        self.measure = measure
        self.stop = stop
        self.release = release
    }
}
