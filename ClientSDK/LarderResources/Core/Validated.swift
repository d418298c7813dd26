public import LarderTime

/// A value that the server has confirmed within a bound. Only the gate makes one (`LarderCache.requireValidated`).
///
/// A function or an operation that has a parameter of this type cannot be called with a value that was never confirmed
/// (`WriteThrough.requiring(_:)`). It expires: an operation rejects it with `.notValidated` if it is older than its bound at that
/// moment, by the larger age of the wall clock and the monotonic clock.
public struct Validated<Value: Sendable>: Sendable {
    /// The confirmed value.
    public let value: Value
    /// When the server confirmed it: the start of that request.
    public let validatedAt: WallTime
    /// How old it may be when it is used, counted from `validatedAt`.
    public let bound: Duration

    private let times: Freshness.Times
    /// Identifies the cache that it came from.
    private let origin: ChangeLock<Void>

    /// Nil if the snapshot has no value.
    init?(_ snapshot: Snapshot<Value>, within bound: Duration, _ core: CacheCore) {
        guard let value = snapshot.value, let times = snapshot.times else { return nil }
        self.value = value
        self.times = times
        self.bound = bound
        validatedAt = times.validatedAt
        origin = core.outboxLock
    }

    /// Checks that the value may be relied on now.
    ///
    /// - Throws: `.notValidated` if it has expired; `.invalidArgument` if it came from another cache.
    func requireCurrent(_ core: CacheCore) throws(LarderError) {
        guard origin === core.outboxLock else {
            throw LarderError(
                .invalidArgument,
                "The validated value came from another cache, perhaps from another account. Call requireValidated of this cache."
            )
        }
        let age = times.age(at: core.now())
        guard let age, age <= bound else {
            let known = age.map { "It was confirmed \($0) ago" } ?? "Its age is unknown, because the clock was set"
            throw LarderError(
                .notValidated,
                "The validated value has expired: \(known), and its bound is \(bound). Nothing was sent. Call requireValidated again."
            )
        }
    }
}
