import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// One exchange with its gates and faults.
///
/// Stages are sequential: each is started by the one before it, directly, by a timer of the world's clock, or by the release of
/// a gate.
///
/// A client that leaves ends each wait, and so does the end of the world: the stages that remain run at once. So a write that has arrived is
/// done, whatever delays it, and nothing waits for somebody who has gone.
///
/// `@unchecked Sendable`: stages are sequential, so no two run at once. A stage does not use the run after it has started the
/// next one, and it starts it through a lock (a loop's mailbox, the clock's, the gates').
final class ExchangeRun: @unchecked Sendable {
    private let plane: ControlPlane
    private let owner: WorldExchange
    private let exchange: Exchange
    private let facts: ExchangeFacts
    private let decisions: [FaultDecision]
    private let trace: ExchangeTrace
    private var repeats = 0
    /// When the line of the device will have carried the request.
    private var uplinkEnd: MonotonicTime?
    /// The idempotency key that the exchange holds.
    private var key: String?

    init(
        _ plane: ControlPlane,
        _ owner: WorldExchange,
        _ exchange: Exchange,
        _ facts: ExchangeFacts,
        _ decisions: [FaultDecision]
    ) {
        self.plane = plane
        self.owner = owner
        self.exchange = exchange
        self.facts = facts
        if let trace = owner.trace as? ExchangeTrace {
            // The head of the request has arrived before its body.
            self.decisions = trace.decisions + decisions
            self.trace = trace
            trace.change { $0.decisions += decisions }
        } else {
            self.decisions = decisions
            let arrival = owner.world.control.recording.arrived()
            trace = ExchangeTrace(
                .init(decisions: decisions, arrived: owner.world.clock.uptime, arrival: arrival)
            )
        }
        owner.trace = trace
    }

    private var world: World { owner.world }
    private var request: Request { facts.request }

    // MARK: Stages before the request is processed

    /// - Parameter isHead: whether only the head has arrived: then the body is read afterwards, up to the byte of a fault.
    func start(isHead: Bool = false) {
        if decisions.contains(where: { $0.fault.action.effect is StaleConnections }) { return finish(.reset, nil) }
        // What is before the body was done when the head had arrived.
        if request.wasAnnounced, !isHead { return arrived() }
        wait(at: .beforeRead) { [self] in
            if let ending = ending(at: [.beforeRead]) {
                end(ending)
            } else if isHead {
                exchange.proceed(upTo: decisions.lazy.map(\.fault).filter { $0.stage == .requestBody }.map(\.at).min())
            } else {
                arrived()
            }
        }
    }

    private func arrived() {
        wait(at: .afterRead) { [self] in
            if exchange.isAbandoned, let uplinkEnd {
                world.control.bandwidth.giveUp(
                    device: facts.device,
                    isUp: true,
                    until: uplinkEnd,
                    now: world.clock.uptime
                )
            }
            // Actors between a client's pull and its push run before any gate or fault.
            for act in world.control.actors.due(facts, .before) { plane.perform(act, in: world) }
            pass(.request) { [self] in process() }
        }
    }

    /// Processes the request when its idempotency key is free, and holds the key until the reply is sent.
    private func process() {
        if let key = plane.keyInFlight(of: request, owner) {
            let waits = world.control.current.dialect.idempotency == .blocking
            let loop = exchange.loop
            let again: @Sendable () -> Void = { [self] in loop.execute { [self] in process() } }
            guard world.control.keysInFlight.begin(key, orWait: waits ? again : nil) else {
                // Only the connection ends: the key decides when the write is done.
                return waits
                    ? exchange.end(while: { true }, by: {}) : send(Idempotency.inProgress().reply(to: request))
            }
            self.key = key
        }
        // Nobody waits for a read any more.
        if exchange.isAbandoned, request.method.isSafe { return }
        // What has arrived of a resumable upload is kept.
        if let part = partOfUpload { return dispatch(part) }
        if let ending = ending(at: [.requestBody, .afterRead]) { return end(ending) }
        if let reply = plane.stubPreflight(request, in: world) { return send(reply) }
        var processing = FaultProcessing(request: request, deviations: owner.deviations)
        for decision in decisions { decision.fault.action.effect.change(&processing, decision) }
        owner.deviations = processing.deviations
        owner.deviations.live = processing.live.map {
            FrameFilter($0.fault, $0.decision, world: world, opening: processing.request, subject: facts.viewer)
        }
        repeats = processing.repeats
        // A reply whose text is changed on its way is not compressed.
        if world.control.current.drift != nil {
            processing.request = processing.request.removing(["accept-encoding"])
        }
        dispatch(processing.request)
    }

    /// The beginning of a piece of a resumable upload that a fault cuts, as a piece that is not the last; nil for any other request.
    private var partOfUpload: Request? {
        guard ending(at: [.requestBody]) != nil else { return nil }
        // The key is that of the whole request, which is sent again.
        let part = request.removing(["idempotency-key"])
        // A piece of tus does not say that it is the last.
        if part.method == .patch, part.fields.range(of: "tus-resumable") != nil { return part }
        guard let range = part.fields.range(of: "upload-complete") else { return nil }
        do { return try part.replacing(range, with: "?0") } catch {
            // The head was read before, and a value that is a Boolean cannot make it wrong. If it did, nothing would be kept, as for any
            // other request.
            return nil
        }
    }

    /// How the first fault at one of the stages that ends the exchange does so.
    private func ending(at stages: [Fault.Stage]) -> FaultEnding? {
        decisions.lazy.filter { stages.contains($0.fault.stage) }.compactMap(\.fault.action.effect.ending).first
    }

    /// Continues after the delays of the faults at a stage.
    private func wait(at stage: Fault.Stage, _ body: @escaping @Sendable () -> Void) {
        let now = world.clock.uptime
        var delay = Duration.zero
        for decision in decisions where decision.fault.stage == stage {
            let effect = decision.fault.action.effect
            let own = effect.delay(decision, facts, world.control.bandwidth, now: now)
            if effect is Bandwidth { uplinkEnd = now + own }
            delay += own
        }
        guard delay > .zero, !exchange.isAbandoned else { return body() }
        trace.change { $0.injected += delay }
        world.clock.wait(for: delay, of: exchange, body)
    }

    /// Continues when no gate holds the exchange.
    private func pass(_ stage: Gate.Stage, _ body: @escaping @Sendable () -> Void) {
        let set = world.control.gates
        guard !set.isEmpty, !exchange.isAbandoned else { return body() }
        let started = world.clock.uptime
        let count = trace.gates.count
        let held = set.hold(facts, stage) { [self] gate, ending in
            trace.add(gate: gate, after: count)
            trace.change { $0.injected += world.clock.uptime - started }
            if let ending { end(ending) } else { body() }
        }
        guard let held else { return body() }
        // Another thread may already have released it and be running its next stage.
        trace.add(gate: held.gate, after: count)
        exchange.end(while: { set.isHolding(held.number) }, by: { set.release(held.number) })
    }

    // MARK: Processing

    private func dispatch(_ request: Request) {
        let answered: @Sendable (Reply) -> Void = { [self] reply in
            if repeats > 0 {
                // Like a proxy that retries: the same request is processed again, and the second reply is sent.
                repeats -= 1
                exchange.loop.execute { [self] in dispatch(request) }
            } else {
                replied(reply)
            }
        }
        var inner = exchange
        inner.interceptor = answered
        let answer: @Sendable () -> Void = { [self, inner] in
            if let reply = plane.answer(request, inner, owner) { answered(reply) }
        }
        // After the release of a gate or a change of the clock this is another thread; requests are processed on their loop.
        if exchange.loop.isCurrent { answer() } else { exchange.loop.execute(answer) }
    }

    // MARK: Stages after the commit

    private func replied(_ reply: Reply) {
        for act in world.control.actors.due(facts, .after) { plane.perform(act, in: world) }
        wait(at: .afterCommit) { [self] in
            pass(.reply) { [self] in
                if let ending = ending(at: [.requestBody, .afterCommit]) {
                    trace.change { $0.hasLostSuccess = (200..<300).contains(reply.status.code) }
                    return end(ending)
                }
                // A proxy has translated the fields, and passes content on unchanged.
                send(reply, hasOwnLinks: owner.prefixLength > 0 && !owner.isForwarded)
            }
        }
    }

    /// Applies a fault that ends the exchange without the reply.
    private func end(_ ending: FaultEnding) {
        switch ending {
        case .respond(let canned): send(plane.reply(canned, to: request, from: facts.device, in: world))
        case .cut(let how): finish(how, nil)
        case .expireToken: send(plane.tokenExpired(to: request, in: world))
        case .refuseConnections(let duration):
            plane.closeListener(for: duration, clock: world.clock)
            finish(.reset, nil)
        }
    }

    /// - Parameter hasOwnLinks: whether links of the API in the reply must address the world by path.
    private func send(_ reply: Reply, hasOwnLinks: Bool = false) {
        let date = DateField.line(at: world.clock.now + world.control.skew(of: facts.device))
        var mutator = ReplyMutator(reply)
        if hasOwnLinks { localize(&mutator) }
        if let drift = world.control.current.drift { apply(drift, &mutator) }
        // Afterwards, so that the length of a HEAD is that of its GET.
        guard let whole = mutator.reply.whole(for: request, date: date) else { return open(reply, date) }
        mutator.reply = whole
        // Before the faults, which count the bytes of the head.
        mutator.head.append { $0.append(request.connectionLine(persists: request.persists)) }
        for decision in decisions {
            let before = mutator
            decision.fault.action.effect.change(&mutator, decision, request)
            // A reply without an ETag, or without a body, may have nothing that the fault changes.
            if decision.fault.action.effect.needsWholeBody, mutator.isSame(as: before) { withdraw(decision) }
        }
        let bytes = mutator.cut.map { Array(mutator.bytes.prefix($0.at)) } ?? mutator.bytes
        pacer(mutator, headCount: min(bytes.count, mutator.headCount), limit: bytes.count).send(bytes)
    }

    /// The fault has changed nothing: it was not applied.
    private func withdraw(_ decision: FaultDecision) {
        trace.change { $0.decisions.removeAll { $0.fault.id == decision.fault.id } }
        world.control.faults.withdraw(decision)
    }

    /// Opens a channel: an event stream, or a WebSocket.
    private func open(_ reply: Reply, _ date: [UInt8]) {
        var reply = reply
        // The date of another server stays (RFC 9110 §6.6.1).
        reply.date = reply.date ?? date
        // What needs a whole body does not apply.
        for decision in decisions where !decision.fault.appliesToChannels { withdraw(decision) }
        var mutator = ReplyMutator(reply)
        for decision in decisions where decision.fault.appliesToChannels {
            decision.fault.action.effect.change(&mutator, decision, request)
        }
        let limit = mutator.cut.map { $0.at - mutator.headCount }
        if let limit, limit < 0 {
            // The engine writes the head of the API's own WebSocket.
            let bytes = reply.head.bytes.isEmpty ? [] : Array(mutator.bytes.prefix(limit + mutator.headCount))
            return pacer(mutator, headCount: bytes.count, limit: bytes.count).send(bytes)
        }
        reply = mutator.reply
        if limit != nil || mutator.pace.isSlow {
            reply.pacer = pacer(mutator, headCount: 0, limit: limit ?? .max)
        }
        let now = world.clock.uptime
        trace.change { $0.ended = now }
        exchange.complete(reply)
    }

    /// What sends the bytes of a reply, and ends the exchange where a fault cuts it.
    private func pacer(_ mutator: ReplyMutator, headCount: Int, limit: Int) -> Pacer {
        let reply = mutator.reply
        return Pacer(
            mutator.pace,
            headCount: headCount,
            limit: limit,
            device: facts.device,
            world: world,
            exchange: exchange
        ) { [self] spent, last in
            trace.change { $0.injected += spent }
            finish(mutator.cut?.how, reply, after: last, isWhole: mutator.isCutAtEnd)
        }
    }

    /// Rewrites the links that the API has written into a reply so that they address the requested world.
    private func localize(_ mutator: inout ReplyMutator) {
        if let location = mutator.head["location"], location.hasPrefix("/"), !location.hasPrefix("//"),
            !location.hasPrefix(world.basePath + "/")
        {
            mutator.head.set("Location", world.basePath + location)
        }
        // Only the demo API writes links into bodies.
        guard plane.backend.servesDemo, world.collections.isEmpty,
            mutator.head["content-type"]?.contains("json") ?? false,
            !mutator.body.isEmpty
        else { return }
        let coding = mutator.head["content-encoding"].flatMap { ContentCoding(name: $0) }
        let plain: [UInt8]
        do { plain = try coding?.decode(mutator.body) ?? mutator.body } catch {
            preconditionFailure("The backend has compressed the reply itself, and it cannot be decompressed: \(error)")
        }
        let changed = ImageLinks.addressing(world.basePath, in: plain)
        guard changed.count > plain.count else { return }
        let body = coding.map { $0.encode(changed) } ?? changed
        guard let body else {
            preconditionFailure("The backend has compressed the reply with the zlib that is now missing.")
        }
        if coding != nil { mutator.reply.bytesSavedByCoding = max(0, changed.count - body.count) }
        mutator.replaceBody(body)
    }

    private func apply(_ drift: SchemaDrift, _ mutator: inout ReplyMutator) {
        guard mutator.head["content-type"]?.hasPrefix("application/json") ?? false,
            let value = try? JSONParser.parse(mutator.body)
        else { return }
        mutator.replaceBody(drift.apply(value).encoded)
    }

    // MARK: Completion

    /// Ends the exchange after its last bytes.
    ///
    /// - Parameters:
    ///   - cut: how a fault ends it; nil: normally.
    ///   - reply: the reply that was sent, at least in part; nil without one.
    ///   - isWhole: whether all bytes of the reply were sent. A reset can still take them from the client.
    private func finish(
        _ cut: FaultAction.ExchangeCut?,
        _ reply: Reply?,
        after last: [UInt8] = [],
        isWhole: Bool = false
    ) {
        let (ending, now) = (cut?.ending ?? .persist, world.clock.uptime)
        trace.change {
            ($0.ended, $0.ending) = (now, reply == nil ? cut?.words.whole : cut?.words.part)
            if isWhole, cut != .reset { $0.ending = nil }
            if $0.arrival != nil, cut == nil { $0.reply = reply }
        }
        exchange.end(ending, after: last, reply)
        if ending == .silence {
            // The client waits until it gives up, or until the world ends.
            let (control, exchange) = (world.control, exchange)
            exchange.loop.execute {
                exchange.whenAbandoned(control.whenEnded { exchange.end(.close, reply) })
            }
        }
        if let key { world.control.keysInFlight.end(key) }
        key = nil
    }
}
