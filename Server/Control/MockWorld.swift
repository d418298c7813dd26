import LarderEngine
import LarderHTTP
public import LarderTime
import Synchronization

/// One world of a backend: its state, clock, faults, gates, journal and oracles.
///
/// A handle that is cheap to copy; safe from any thread. What it throws is a `Problem` that says what to do.
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

    /// Where the world serves: what comes before `/v1`.
    public var url: String { base + world.basePath }

    /// The world's time.
    public var clock: WorldClock { world.clock }

    /// How many transactions were committed since the world was made.
    public var commitCount: Int { Int(world.commitCount) }

    // MARK: State

    /// Takes the world back to what it began with; faults, gates and phantoms are taken back too.
    public func reset() throws { try plane.worlds.reset(id) }

    /// Keeps the present state under a name.
    public func takeSnapshot(_ name: String) throws { _ = try plane.worlds.takeSnapshot(name, of: id) }

    /// Goes back to a snapshot.
    public func restore(_ name: String) throws { try plane.worlds.restore(name, in: id) }

    /// Makes a world that goes on from the present state of this one.
    public func fork(id: String? = nil, seed: UInt64? = nil) throws -> MockWorld {
        MockWorld(plane, try plane.worlds.fork(self.id, id: id, seed: seed), url: base)
    }

    /// Ends the world. Requests to it are answered with 404 from then on.
    public func destroy() throws { try plane.worlds.destroy(id) }

    // MARK: Faults

    /// Sets faults; one with the name of another takes its place.
    ///
    /// - Returns: the faults, each with its name.
    @discardableResult public func set(_ faults: Fault...) throws -> [Fault] { try plane.setFaults(faults, in: world) }

    /// Sets the faults of a journey, beginning now.
    @discardableResult public func set(_ journey: Journey, for match: FaultMatch = FaultMatch()) throws -> [Fault] {
        try plane.setFaults(journey.faults(for: match), in: world)
    }

    /// Starts a script, beginning now.
    ///
    /// - Returns: what in it will never strike, each in a sentence.
    @discardableResult public func run(_ script: FaultScript) throws -> [String] { try plane.run(script, in: world) }

    /// The faults that are set, each with how often it struck.
    public var faults: [(fault: Fault, strikes: Int)] { world.control.faults.all }

    /// Takes a fault back; false where there is none of that name.
    @discardableResult public func removeFault(_ id: String) -> Bool { world.control.faults.remove(id) }

    /// Takes all faults back.
    public func removeFaults() { world.control.faults.removeAll() }

    /// How far a device's dates are off; `*` for all devices.
    public func skewDates(of device: String, by offset: Duration) {
        world.control.change { $0.skews[device] = offset == .zero ? nil : offset }
    }

    /// How the world speaks where real servers differ.
    public var dialect: Dialect {
        get { world.control.current.dialect }
        nonmutating set { world.control.change { $0.dialect = newValue } }
    }

    /// Replies as a later version of the API might give them; nil for those of this one.
    public var drift: SchemaDrift? {
        get { world.control.current.drift }
        nonmutating set { world.control.change { $0.drift = newValue } }
    }

    /// Plays a trick on the readers of the change feed.
    public func play(_ trick: ChangeTrick) throws { try plane.play(trick, in: world) }

    // MARK: Others

    /// Does what somebody else does, at once.
    @discardableResult public func perform(_ act: PhantomAct) -> PhantomResult { plane.perform(act, in: world) }

    /// Does it once that much time has passed in the world.
    public func perform(_ act: PhantomAct, after delay: Duration) {
        let (plane, world) = (plane, world)
        _ = world.clock.schedule(after: delay) { plane.perform(act, in: world) }
    }

    /// Has somebody act at a moment of an exchange.
    @discardableResult public func set(_ phantom: Phantom) throws -> Phantom { try world.control.phantoms.add(phantom) }

    // MARK: Gates

    /// Sets a gate.
    @discardableResult public func set(_ gate: Gate) throws -> Gate { try world.control.gates.add(gate) }

    /// Takes a gate away, and lets go what it holds.
    @discardableResult public func removeGate(_ id: String) -> Bool { world.control.gates.remove(id) }

    /// What gates hold, in the order in which it came.
    public var held: [HeldExchange] { world.control.gates.held }

    /// Lets an exchange go on; false when it is not held.
    @discardableResult public func release(_ exchange: HeldExchange) -> Bool {
        world.control.gates.release(exchange.number)
    }

    /// Answers a held exchange with something else.
    @discardableResult public func answer(_ exchange: HeldExchange, with reply: CannedReply) -> Bool {
        world.control.gates.release(exchange.number, .answer(reply))
    }

    /// Ends a held exchange without a reply.
    @discardableResult public func cut(_ exchange: HeldExchange, by cut: FaultAction.ExchangeCut) -> Bool {
        world.control.gates.release(exchange.number, .cut(cut))
    }

    /// Lets everything go on that a gate holds, or that any gate holds; returns how much it was.
    @discardableResult public func releaseAll(of gate: String? = nil) -> Int {
        world.control.gates.releaseAll(of: gate)
    }

    // MARK: The journal

    /// The entries that match, oldest first.
    public func journal(_ filter: JournalFilter = JournalFilter()) async -> [JournalRecord] {
        await plane.barrier()
        let matcher = JournalMatcher(filter) { [plane, world] in plane.handle(of: $0, in: world) }
        return world.control.journal.entries.filter { matcher.matches($0) }.map {
            JournalRecord($0, handle: plane.handle(of: $0.user, in: world))
        }
    }

    /// Forgets the journal; numbers go on.
    public func clearJournal() { world.control.journal.clear() }

    /// Compares the journal with expectations. The report says what a person needs to know.
    public func verify(
        _ expectations: Expectation...,
        inOrder: Bool = false,
        noneOther: Bool = false
    ) async -> VerificationReport {
        await plane.barrier()
        return plane.verifier(world).verify(expectations, inOrder: inOrder, noneOther: noneOther)
    }

    /// Waits until a condition holds; false when the limit was over first.
    ///
    /// - Parameter limit: measured by the system's clock. Ends early, with false, when the task is cancelled.
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

    /// How clients behaved.
    public var conduct: ConductReport {
        get async {
            await plane.barrier()
            return ConductInspector.inspect(world.control.journal.entries)
        }
    }

    /// The journal as an HTTP archive (HAR 1.2), as JSON.
    public var har: [UInt8] {
        get async {
            await plane.barrier()
            return HAR.document(world.control.journal.entries, base: url, version: MockBackend.version).encoded
        }
    }

    // MARK: Oracles

    /// Contradictions in the ledger, each in a sentence; none in a sound one.
    public func ledgerFaults() throws -> [String] { try world.checkLedger().map(\.description) }

    /// The rows in which a client differs from what its person can see.
    ///
    /// - Parameters:
    ///   - held: the entities that the client holds, with their versions.
    ///   - types: which kinds are compared, as `types=` of the change feed spells them; nil for all.
    public func differences(held: [String: Int], types: String? = nil, as person: String?) throws -> [Difference] {
        try plane.differences(held: held, types: types, as: person, in: world)
    }
}

/// One entry of a journal, for tests.
public struct JournalRecord: Sendable, CustomStringConvertible {
    private let entry: JournalEntry
    /// The person who asked, by handle.
    public let user: String?

    init(_ entry: JournalEntry, handle: String?) {
        self.entry = entry
        user = handle
    }

    /// Numbers the entries of a world, from 1.
    public var number: Int { entry.number }
    /// Whether it is an exchange, and not a frame of a live channel.
    public var isExchange: Bool { entry.isExchange }
    /// The request's method.
    public var method: String { entry.request.method.rawValue }
    /// Path and query, inside the world.
    public var target: String { Secrets.masked(target: entry.request.targetText) }
    /// The reply's status; nil where there was none.
    public var status: Int? { entry.status == 0 ? nil : entry.status }
    /// How it went: `complete`, `reset`, `closed`, `truncated`, `silent`, `stalled`, `abandoned`, `cut`.
    public var outcome: String { entry.outcome }
    /// The names of the faults that struck.
    public var faults: [String] { entry.trace?.decisions.map(\.fault.id) ?? [] }
    /// What was done with a frame on purpose.
    public var fate: String? { if case .frame(let frame) = entry.kind { frame.fate } else { nil } }
    /// The number of the connection in the world.
    public var connection: Int { entry.connection }
    /// The number of the exchange on its connection.
    public var exchange: Int { entry.request.exchangeIndex }
    /// The commit that it made; nil for none.
    public var commit: Int? { entry.commit > 0 ? Int(entry.commit) : nil }
    /// Bytes of head and body that were sent.
    public var bytesSent: Int { entry.bytesSent }
    /// How long it took, on the server's clock.
    public var duration: Duration { entry.duration }
    /// How much of that was put there on purpose, on the world's clock.
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

    /// The entry in a line.
    public var description: String { Verifier.line(entry) }
}
