import Foundation
public import LarderTime
import Synchronization

/// Gives any asynchronous function a cache: a key, parameters, a type and a strategy are all that it needs.
///
/// Calls for a key that is on its way wait for it. Safe from any task. Where a storage fails the function is called as if nothing
/// was recorded, and `onStorageError` is told.
public final class CachedRequests: Sendable {
    /// For how long an answer is used, unless a request says otherwise.
    public static let standardLifetime: Duration = .seconds(86_400)

    private struct Name: Hashable {
        let key: String
        let type: ObjectIdentifier
    }

    private let storage: any RequestStorage
    private let clock: any WallClock
    private let onStorageError: @Sendable (any Error) -> Void
    private let running = Mutex<[Name: any AnyCall]>([:])

    /// - Parameters:
    ///   - storage: where answers are recorded.
    ///   - clock: what their age goes by.
    ///   - onStorageError: told when the storage failed.
    public init(
        storage: any RequestStorage,
        clock: any WallClock = SystemWallClock(),
        onStorageError: @escaping @Sendable (any Error) -> Void = { _ in }
    ) {
        self.storage = storage
        self.clock = clock
        self.onStorageError = onStorageError
    }

    /// Runs a cached request, and gives its first answer: with `cacheAndLoad` what is recorded, while the function goes on.
    ///
    /// - Parameters:
    ///   - name: what the request is called; with the parameters it is the key, whatever their order.
    ///   - lifetime: for how long the answer is used.
    ///   - load: the function. It is called once for all who wait for the key at that time.
    /// - Throws: `.notCached`, or what the function failed with.
    public func request<Value: Codable & Sendable>(
        _ name: String,
        _ parameters: [String: String] = [:],
        as type: Value.Type = Value.self,
        strategy: RequestStrategy = .cacheElseLoad,
        lifetime: Duration = standardLifetime,
        load: @escaping @Sendable () async throws -> Value
    ) async throws(LarderError) -> RequestResult<Value> {
        let key = Self.key(name, parameters)
        if let recorded = recorded(type, key, strategy) {
            if strategy == .cacheAndLoad { _ = shared(key, lifetime, load) }
            return recorded
        }
        guard strategy != .cacheNoLoad else {
            throw LarderError(.notCached, "Nothing is recorded for «\(key)», and the strategy forbids to load it.")
        }
        return try await loaded(key, lifetime, load)
    }

    /// Runs a cached request, and gives every answer as it comes: with `cacheAndLoad` what is recorded and then the function's.
    ///
    /// - Throws: from the iteration, as `request`; what was recorded has come before that.
    public func answers<Value: Codable & Sendable>(
        _ name: String,
        _ parameters: [String: String] = [:],
        as type: Value.Type = Value.self,
        strategy: RequestStrategy = .cacheAndLoad,
        lifetime: Duration = standardLifetime,
        load: @escaping @Sendable () async throws -> Value
    ) -> RequestAnswers<Value> {
        let key = Self.key(name, parameters)
        var loads: (@Sendable () async throws(LarderError) -> RequestResult<Value>)?
        if strategy != .cacheNoLoad {
            loads = { () async throws(LarderError) in try await self.loaded(key, lifetime, load) }
        }
        return RequestAnswers(
            recorded: { self.recorded(type, key, strategy) },
            stopsAtRecorded: strategy != .cacheAndLoad,
            load: loads
        )
    }

    // MARK: By hand

    /// Records a value, as if a request had been answered with it.
    public func store<Value: Codable & Sendable>(
        _ value: Value,
        for name: String,
        _ parameters: [String: String] = [:],
        lifetime: Duration = standardLifetime
    ) throws(LarderError) {
        let key = Self.key(name, parameters)
        outrun { $0 == key }
        try record(value, key, lifetime, at: clock.now)
    }

    /// What is recorded, however old, and when that was; nil where nothing is, or nothing of that type.
    public func retrieve<Value: Codable & Sendable>(
        _ type: Value.Type = Value.self,
        for name: String,
        _ parameters: [String: String] = [:]
    ) -> (value: Value, recordedAt: WallTime)? {
        recorded(type, Self.key(name, parameters), .cacheNoLoad).map { ($0.value, $0.recordedAt) }
    }

    /// Forgets what is recorded. What a call brings that is on its way reaches those who wait for it, and is not recorded.
    public func remove(_ name: String, _ parameters: [String: String] = [:]) throws(LarderError) {
        let key = Self.key(name, parameters)
        outrun { $0 == key }
        do { try storage.remove(key) } catch { throw LarderError(error) }
    }

    /// Removes what is outdated; how many that were.
    @discardableResult
    public func removeOutdated() throws(LarderError) -> Int {
        do { return try storage.removeOutdated(at: clock.now) } catch { throw LarderError(error) }
    }

    /// Removes everything. Nothing that is on its way is recorded either.
    public func removeAll() throws(LarderError) {
        outrun { _ in true }
        do { try storage.removeAll() } catch { throw LarderError(error) }
    }

    // MARK: Inside

    private static func key(_ name: String, _ parameters: [String: String]) -> String {
        QueryKey(name, parameters).description
    }

    private func recorded<Value: Codable & Sendable>(
        _ type: Value.Type,
        _ key: String,
        _ strategy: RequestStrategy
    ) -> RequestResult<Value>? {
        guard strategy != .noCacheDoLoad else { return nil }
        do {
            guard let answer = try storage.answer(for: key) else { return nil }
            let now = clock.now
            // Recorded in the future: the clock was set back, and nobody knows how old it is.
            let isOutdated = now >= answer.outdatedAt || now < answer.recordedAt
            if isOutdated, strategy == .cacheElseLoad { return nil }
            // It stays where it is of another type: a request of that type reads it.
            guard let value = try? JSONDecoder().decode(type, from: Data(answer.payload)) else { return nil }
            return RequestResult(value: value, recordedAt: answer.recordedAt, isFromCache: true)
        } catch {
            onStorageError(error)
            return nil
        }
    }

    private func record<Value: Codable & Sendable>(
        _ value: Value,
        _ key: String,
        _ lifetime: Duration,
        at now: WallTime
    ) throws(LarderError) {
        let payload: [UInt8]
        do {
            payload = Array(try JSONEncoder().encode(value))
        } catch {
            throw LarderError(.encoding, "The answer of «\(key)» could not be encoded: \(error)", cause: error)
        }
        do {
            try storage.store(
                RecordedAnswer(payload: payload, recordedAt: now, outdatedAt: now + max(.zero, lifetime)),
                for: key
            )
        } catch {
            throw LarderError(.storage, "The answer of «\(key)» could not be recorded: \(error)", cause: error)
        }
    }

    private func loaded<Value: Codable & Sendable>(
        _ key: String,
        _ lifetime: Duration,
        _ load: @escaping @Sendable () async throws -> Value
    ) async throws(LarderError) -> RequestResult<Value> {
        let call = shared(key, lifetime, load)
        defer { call.flight.leave() }
        try await call.flight.wait()
        guard let result = call.result.withLock({ $0 }) else {
            throw LarderError(.cancelled, "The request for «\(key)» was given up.")
        }
        return result
    }

    /// The call that is on its way, or a new one; the caller takes part in it.
    private func shared<Value: Codable & Sendable>(
        _ key: String,
        _ lifetime: Duration,
        _ load: @escaping @Sendable () async throws -> Value
    ) -> SharedCall<Value> {
        let name = Name(key: key, type: ObjectIdentifier(Value.self))
        let now = clock.now
        let (call, isNew) = running.withLock { running in
            if let known = running[name] as? SharedCall<Value>, known.flight.hold() { return (known, false) }
            let moment = Moment(wall: now, uptime: MonotonicTime(nanoseconds: 0), epoch: 0)
            let call = SharedCall<Value>(
                Flight(order: 0, moment: moment) { [weak self] flight in self?.forget(name, flight) }
            )
            running[name] = call
            return (call, true)
        }
        guard isNew else { return call }
        call.flight.run(
            Task {
                do {
                    let value = try await load()
                    // Nobody waits any more, and a later call may have recorded something newer.
                    guard call.flight.claim() else { throw CancellationError() }
                    do {
                        try call.record { () throws(LarderError) in try self.record(value, key, lifetime, at: now) }
                    } catch { self.onStorageError(error) }
                    call.result.withLock {
                        $0 = RequestResult(value: value, recordedAt: now, isFromCache: false)
                    }
                    self.end(name, call, .success(()))
                } catch {
                    self.end(name, call, .failure(LarderError(error)))
                }
            }
        )
        return call
    }

    /// Keeps what is on its way from being recorded: something newer is. Who asks from now on does not wait for it.
    private func outrun(_ isChosen: (String) -> Bool) {
        let calls = running.withLock { running in
            let chosen = running.filter { isChosen($0.key.key) }
            for name in chosen.keys { running[name] = nil }
            return Array(chosen.values)
        }
        for call in calls { call.outrun() }
    }

    private func end<Value>(_ name: Name, _ call: SharedCall<Value>, _ result: Result<Void, LarderError>) {
        // Before its waiters go on: who asks then asks anew.
        running.withLock { running in if running[name] === call { running[name] = nil } }
        call.flight.finish(result)
    }

    private func forget(_ name: Name, _ flight: Flight) {
        running.withLock { running in
            if running[name]?.flight === flight { running[name] = nil }
        }
    }
}

/// A call of a function, shared by those who wait for its key.
private final class SharedCall<Value: Sendable>: AnyCall {
    let flight: Flight
    let result = Mutex<RequestResult<Value>?>(nil)
    /// Held while its answer is recorded.
    private let mayRecord = Mutex(true)

    init(_ flight: Flight) { self.flight = flight }

    /// Records its answer by `body`, unless it was outrun.
    func record(_ body: () throws(LarderError) -> Void) throws(LarderError) {
        try mayRecord.withLock { (mayRecord) throws(LarderError) in if mayRecord { try body() } }
    }

    func outrun() { mayRecord.withLock { $0 = false } }
}

/// A call without its type.
private protocol AnyCall: AnyObject, Sendable {
    var flight: Flight { get }

    /// Its answer is not to be recorded any more.
    func outrun()
}

/// The answers of a cached request as they come: at most what is recorded and what is loaded. Each iteration asks by itself.
public struct RequestAnswers<Value: Codable & Sendable>: AsyncSequence, Sendable {
    /// Gives the answers.
    public struct Iterator: AsyncIteratorProtocol {
        private enum Step {
            case recorded, load, end
        }

        private let answers: RequestAnswers
        private var step = Step.recorded

        init(_ answers: RequestAnswers) { self.answers = answers }

        /// The next answer; nil when there are no more.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(LarderError) -> RequestResult<
            Value
        >? {
            if step == .recorded {
                step = .load
                if let recorded = answers.recorded() {
                    if answers.stopsAtRecorded { step = .end }
                    return recorded
                }
            }
            guard step == .load else { return nil }
            step = .end
            guard let load = answers.load else {
                throw LarderError(.notCached, "Nothing is recorded, and the strategy forbids to load it.")
            }
            return try await load()
        }
    }

    let recorded: @Sendable () -> RequestResult<Value>?
    let stopsAtRecorded: Bool
    let load: (@Sendable () async throws(LarderError) -> RequestResult<Value>)?

    /// Begins to ask, at the first call of `next`.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }
}
