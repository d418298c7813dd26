import LarderCoding
import LarderEngine
import LarderHTTP
public import LarderTime
import Synchronization

/// One world of a backend: its state, clock, faults, gates, journal and oracles.
///
/// A handle that is cheap to copy; safe from any thread. Its methods throw a `Problem` that says what to do.
///
/// ```swift
/// let backend = try MockBackend.start(.fixtures(directory: "Fixtures"))
/// let world = try backend.makeWorld()
/// world.clock.freeze()
/// try world.set(Fault(.loseReply(.reset), when: FaultMatch("POST", "/v1/transfers")))
/// // … the client under test makes a transfer at world.url …
/// let report = await world.verify(.exactly(2, JournalFilter("POST", "/v1/transfers")))
/// print(report.holds, await world.conduct.findings)
/// ```
public struct MockWorld: Sendable {
    private let plane: ControlPlane
    let world: World
    private let base: String

    init(_ plane: ControlPlane, _ world: World, url: String) {
        self.plane = plane
        self.world = world
        base = url
    }

    /// The world's name.
    public var id: String { world.id }

    /// The base URL of the world, to which `/v1` is appended.
    public var url: String { base + world.basePath }

    /// The world's clock.
    public var clock: WorldClock { world.clock }

    /// The number of committed transactions since the world was made.
    public var commitCount: Int { Int(world.commitCount) }

    // MARK: State

    /// Returns the world to its initial state; faults, gates and actors are removed.
    public func reset() throws { try plane.worlds.reset(id) }

    /// Stores the present state under a name.
    public func takeSnapshot(_ name: String) throws { _ = try plane.worlds.takeSnapshot(name, of: id) }

    /// Restores a snapshot.
    public func restore(_ name: String) throws { try plane.worlds.restore(name, in: id) }

    /// Makes a world that starts from the present state of this one.
    public func fork(id: String? = nil, seed: UInt64? = nil) throws -> MockWorld {
        MockWorld(plane, try plane.worlds.fork(self.id, id: id, seed: seed), url: base)
    }

    /// Removes the world. Further requests to it are answered with 404.
    public func destroy() throws { try plane.worlds.destroy(id) }

    // MARK: Faults

    /// Sets faults; a fault replaces one with the same name.
    ///
    /// - Returns: the faults with their names.
    @discardableResult public func set(_ faults: Fault...) throws -> [Fault] { try plane.setFaults(faults, in: world) }

    /// Sets the faults of a journey, starting now.
    @discardableResult public func set(_ journey: Journey, for match: FaultMatch = FaultMatch()) throws -> [Fault] {
        try plane.set(journey, for: match, in: world)
    }

    /// Starts a script now.
    ///
    /// - Returns: warnings about steps that have no effect.
    @discardableResult public func run(_ script: FaultScript) throws -> [String] { try plane.run(script, in: world) }

    /// The current faults, each with the number of exchanges that it was applied to.
    public var faults: [(fault: Fault, applications: Int)] { world.control.faults.applied }

    /// Removes a fault; false if there is none with that name.
    @discardableResult public func removeFault(_ id: String) -> Bool { world.control.faults.remove(id) }

    public func removeFaults() { world.control.faults.removeAll() }

    /// Sets the offset of the dates that a device receives: `Date`, and a date in the `Retry-After` of a fault; `*` for all devices.
    public func skewDates(of device: String, by offset: Duration) {
        world.control.change { $0.skews[device] = offset == .zero ? nil : offset }
    }

    /// The protocol variants that the world uses.
    public var dialect: Dialect {
        get { world.control.current.dialect }
        nonmutating set { world.control.change { $0.dialect = newValue } }
    }

    /// Replies as a later version of the API might send them; nil for none.
    public var drift: SchemaDrift? {
        get { world.control.current.drift }
        nonmutating set { world.control.change { $0.drift = newValue } }
    }

    // MARK: Scripted actors

    /// Executes an action immediately.
    @discardableResult public func perform(_ act: ScriptedAction) -> (status: Int, body: [UInt8]) {
        let reply = plane.perform(act, in: world)
        return (reply.status.code, reply.bytes)
    }

    /// Reads a representation as a person sees it, without a trace in the state of custom routes.
    func look(at path: String, as person: String?) -> (status: Int, body: [UInt8]) {
        let reply = plane.look(at: path, as: person, in: world)
        return (reply.status.code, reply.bytes)
    }

    /// Adds an actor that acts at a stage of matching exchanges.
    @discardableResult public func set(_ actor: ScriptedActor) throws -> ScriptedActor {
        try plane.set(actor, in: world)
    }

    // MARK: Gates

    /// Adds a gate.
    @discardableResult public func set(_ gate: Gate) throws -> Gate { try world.control.gates.add(gate) }

    /// Removes a gate and releases the exchanges that it holds.
    @discardableResult public func removeGate(_ id: String) -> Bool { world.control.gates.remove(id) }

    /// The held exchanges, in the order of arrival.
    public var held: [HeldExchange] { world.control.gates.held }

    /// Releases an exchange; false if it is not held.
    @discardableResult public func release(_ exchange: HeldExchange) -> Bool {
        world.control.gates.release(exchange.number)
    }

    /// Answers a held exchange with another reply.
    @discardableResult public func answer(_ exchange: HeldExchange, with reply: CannedReply) -> Bool {
        world.control.gates.release(exchange.number, .respond(reply))
    }

    /// Ends a held exchange without a reply.
    @discardableResult public func cut(_ exchange: HeldExchange, by cut: FaultAction.ExchangeCut) -> Bool {
        world.control.gates.release(exchange.number, .cut(cut))
    }

    /// Releases all exchanges of a gate, or of all gates; returns their number.
    @discardableResult public func releaseAll(of gate: String? = nil) -> Int {
        world.control.gates.releaseAll(of: gate)
    }

    // MARK: The journal

    /// The matching entries, oldest first.
    public func journal(_ filter: JournalFilter = JournalFilter()) async -> [JournalRecord] {
        let matcher = JournalMatcher(filter, in: world)
        return await entries.filter { matcher.matches($0) }.map {
            JournalRecord($0, handle: Authenticator.handle(of: $0.user, in: world))
        }
    }

    /// All entries.
    var entries: [JournalEntry] {
        get async {
            await plane.barrier()
            return world.control.journal.entries
        }
    }

    /// Removes all entries; numbers continue.
    public func clearJournal() { world.control.journal.clear() }

    /// Compares the journal with expectations.
    public func verify(
        _ expectations: Expectation...,
        inOrder: Bool = false,
        noneOther: Bool = false
    ) async -> VerificationReport {
        await Verifier(entries: entries, dropped: world.control.journal.dropped, world: world).verify(
            expectations,
            inOrder: inOrder,
            noneOther: noneOther
        )
    }

    /// Waits for a condition; false if the limit ended first.
    ///
    /// - Parameters:
    ///   - condition: what is waited for.
    ///   - limit: measured by the system's clock. If the task is cancelled the wait ends early with false.
    public func wait(for condition: WaitCondition, limit: Duration = .seconds(10)) async -> Bool {
        guard let loop = plane.firstLoop else { return false }
        let box = Mutex<Waiter?>(nil)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waiter = Waiter(condition, plane, world, loop) { holds, _ in continuation.resume(returning: holds) }
                box.withLock { $0 = waiter }
                waiter.start(limit: limit, by: .real)
                if Task.isCancelled { waiter.end(false) }
            }
        } onCancel: {
            box.withLock { $0 }?.end(false)
        }
    }

    /// The report of client behaviour.
    public var conduct: ConductReport {
        get async { ConductReport(await entries, dropped: world.control.journal.dropped?.count ?? 0) }
    }

    /// The journal as an HTTP archive (HAR 1.2), as JSON.
    public var har: [UInt8] {
        get async { HAR.document(await entries, base: String(url.dropFirst("http://".count))) }
    }

    // MARK: Oracles

    /// Inconsistencies in the ledger, one sentence each; empty for a consistent ledger.
    public func ledgerFaults() throws -> [String] { try world.checkLedger().map(\.description) }

    /// Whether an operation of a person with an idempotency key has succeeded.
    ///
    /// - Parameter route: such as `POST /v1/likes`.
    package func hasSucceeded(_ route: String, key: String, as person: String) throws -> Bool {
        try world.hasSucceeded(route, key: key, as: person)
    }

    /// The entities in which a client differs from what its person can see.
    ///
    /// - Parameters:
    ///   - held: the client's entities with their versions.
    ///   - types: the kinds to compare, as in `types=` of the change feed; nil for all.
    ///   - person: the handle of the user; nil: anonymous.
    public func differences(held: [String: Int], types: String? = nil, as person: String?) throws -> [Difference] {
        try plane.differences(held: held, types: types, as: person, in: world)
    }
}

/// One entry of a journal, for tests.
public struct JournalRecord: Sendable, CustomStringConvertible {
    private let entry: JournalEntry
    /// The caller's handle.
    public let user: String?

    /// What a perfect cache would have done, a sentence each: `was fresh for 41 s more`. Empty for a write, a frame and an error.
    public var verdicts: [String] { entry.verdicts.map(\.text) }

    init(_ entry: JournalEntry, handle: String?) {
        self.entry = entry
        user = handle
    }

    /// The 1-based number of the entry in its world.
    public var number: Int { entry.number }
    /// Whether the entry is an exchange; otherwise it is a frame of a live channel.
    public var isExchange: Bool { entry.isExchange }
    /// The request's method.
    public var method: String { entry.request.method.rawValue }
    /// Path and query, inside the world.
    public var target: String { Secrets.masked(target: entry.request.targetText) }
    /// The reply's status; nil if there was none.
    public var status: Int? { entry.status == 0 ? nil : entry.status }
    /// The outcome: `complete`, `reset`, `closed`, `truncated`, `silent`, `stalled`, `abandoned`, `cut`.
    public var outcome: String { entry.outcome }
    /// The names of the applied faults.
    public var faults: [String] { entry.faults }
    /// What a fault did to a frame: `lost`, `delayed`, `doubled`, `reordered`, `held back` or `silenced`; nil for nothing.
    public var injectedFault: String? { if case .frame(let frame) = entry.kind { frame.injectedFault } else { nil } }
    /// The number of the connection in the world.
    public var connection: Int { entry.connection }
    /// The number of the exchange on its connection.
    public var exchange: Int { entry.request.exchangeIndex }
    /// The number of the exchange's commit; nil for none.
    public var commit: Int? { entry.commit > 0 ? Int(entry.commit) : nil }
    /// Bytes of head and body that were sent.
    public var bytesSent: Int { entry.bytesSent }
    /// Bytes that compression has taken off the body.
    public var bytesSavedByCoding: Int { entry.bytesSavedByCoding }
    /// The duration on the server's clock.
    public var duration: Duration { entry.duration }
    /// The injected part of the duration, on the world's clock.
    public var injected: Duration { entry.trace?.injected ?? .zero }
    /// The world's time at the end.
    public var at: WallTime { entry.at }

    /// The value of a field of the request; secrets are masked.
    public func requestField(_ name: String) -> String? {
        FieldName(name).flatMap { entry.request.fields.combined($0) }.map { Secrets.masked(field: name, $0) }
    }

    /// The value of a field of the reply; secrets are masked.
    public func replyField(_ name: String) -> String? {
        entry.replyField(name.lowercased()).map { Secrets.masked(field: name, $0) }
    }

    /// The entry in one line.
    public var description: String { Verifier.line(entry) }
}
