import FileFaults
import Larder
import LarderDemo
import LarderDevice
import LarderHTTP
import LarderModels
import LarderResources
import LarderSQLite
import LarderServer
import LarderStorage
import LarderTLS
import LarderTesting
import LarderTime
import LarderTransport
import SimulationRuntime

/// The app of one account on one machine: its process, its network and its disk. Two of them may share a machine.
///
/// `@unchecked Sendable`: as `Simulation`.
final class Device: @unchecked Sendable {
    let simulation: Simulation
    let index: Int
    let machine: Machine
    let name: String
    /// The user that is signed in or was last.
    var handle: String { machine.handle }
    private(set) var client: LarderClient?
    private(set) var clock: DeviceClock
    private(set) var loop = SocketLoop(isStepped: true)
    private(set) var timeLeft: Duration?
    private var faults = FaultPlan()
    /// Whether a start is under way.
    private var isStarting = false
    var isSigningIn = false
    /// The number of times that the app was started.
    private(set) var starts = 0
    /// Grows when the process ends: what belongs to an earlier one is not judged.
    private(set) var generation = 0
    let sources = NetworkMonitor.ManualSource()
    let random: SharedUnit
    var watched = Watched()
    /// The last tap of the person on each post.
    var lastTaps: [String: LastTap] = [:]
    /// When the person has last sent a rejected tap again.
    var tappedAgainAt: MonotonicTime?
    /// The number of operations that the server has rejected.
    var rejections = 0
    /// When the requests of the last minute were sent, and the most within a minute.
    var requests: [MonotonicTime] = []
    var mostRequests = 0
    /// The keys of rejected operations that the person has sent once more.
    var retriedKeys: Set<String> = []
    /// When the latest request for the tasks that this process has sent and that was answered began, and the errands it has shown.
    var tasksConfirmedAt: MonotonicTime?
    var taskIDsAskedAt: MonotonicTime?
    var errandsShown: Set<String> = []
    /// How many scripts ask for pictures, and when the last one has ended.
    var pictureScripts = 0
    var picturesIdleSince = MonotonicTime(nanoseconds: 0)
    /// The bytes of pixels that may be in memory at present.
    var pictureBytesMaximum = Int.max
    /// The clients of processes that have ended.
    private var ended: [Weak<LarderClient>] = []

    init(_ simulation: Simulation, _ index: Int, _ machine: Machine) {
        self.simulation = simulation
        self.index = index
        self.machine = machine
        name = "\(machine.handle) \(index)"
        random = SharedUnit(simulation.seed ^ UInt64(index + 1) << 32)
        clock = DeviceClock(simulation.clock, origin: simulation.clock.uptime, error: DateError())
    }

    var isRunning: Bool { client != nil }
    /// The URL of the server.
    var server: String { "\(simulation.roots == nil ? "http" : "https")://\(Network.address(of: index)):8080" }

    // MARK: The process

    /// Starts the app, if it does not run.
    func open() async {
        guard client == nil, !isStarting else { return }
        isStarting = true
        defer { isStarting = false }
        starts += 1
        let generation = generation
        clock = DeviceClock(simulation.clock, origin: machine.booted, error: machine.dateError)
        loop = SocketLoop(isStepped: true)
        faults = machine.recordsSyncs ? machine.newPlan() : FaultPlan()
        let settings = configuration()
        do {
            let opened = try await LarderClient(
                server: server,
                account: machine.handle,
                directory: machine.directory,
                settings
            )
            guard generation == self.generation else { return opened.close() }
            client = opened
            limitPictures()
            simulation.note("\(name): open")
            judgeTransfers()
            judgeEdits()
            judgeNewAccount()
            if opened.session.userID != nil { watch() }
        } catch {
            // The process has died while it was opening, or its disk fails. The next start tries again.
            simulation.note("\(name): cannot open, \(error.code.rawValue)")
            if !faults.isDead, !machine.hasDiskTrouble {
                simulation.find(.disk, "\(name) cannot open its store: \(error)")
            }
        }
    }

    private func configuration() -> LarderClient.Configuration {
        var socket = SocketTransport.Configuration()
        socket.timeout = .seconds(30)
        if let roots = simulation.roots { socket.tls.roots = .only(roots) }
        let sockets = SocketTransport(socket, clock: clock, loop: loop)
        let named = NamedTransport(device: name, base: sockets) {
            [weak self, generation] request, status, sentAt in
            guard let self, generation == self.generation else { return }
            self.noteReply(to: request, status: status, sentAt: sentAt)
        } now: { [clock = simulation.clock, weak self] in
            self?.noteRequest(at: clock.uptime)
            return clock.uptime
        }
        var settings = LarderClient.Configuration(transport: named)
        settings.webSockets = sockets.webSockets()
        settings.cache.wallClock = clock
        settings.cache.monotonicClock = clock
        settings.cache.stamps = machine.stamps
        settings.cache.random = { [random] in random.next() }
        settings.cache.onEvent = { [weak self, generation] event in
            guard let self, generation == self.generation else { return }
            self.note(event)
        }
        var disk = DiskStore.Configuration(
            directory: DiskStore.directory(forAccount: machine.handle, in: machine.directory),
            clock: clock
        )
        disk.mayBlock = false
        disk.faults = faults
        disk.outboxReserveBytes = 64 << 10
        if let limits = simulation.plan.limits {
            settings.cache.memoryBytesMaximum = limits.memoryBytes
            settings.cache.memoryEntriesMaximum = limits.memoryEntries
            settings.cache.outboxOperationsMaximum = limits.operations
            settings.cache.outboxBytesMaximum = limits.operationBytes
            disk.bytesMaximum = limits.diskBytes
        }
        if let limits = simulation.plan.pictureLimits {
            settings.imageBytesMaximum = limits.diskBytes
            disk.sharesFaults = true
        }
        settings.cache.storage = .disk(disk)
        settings.httpCacheBytesMaximum = simulation.plan.settings.hasHTTPCache ? 1 << 20 : 0
        settings.services = .none
        if simulation.plan.settings.hasMonitor {
            settings.services.network = .own
            settings.services.networkSource = sources
        }
        if simulation.plan.settings.hasMaintenance { settings.services.maintenance = .init() }
        settings.liveKinds = simulation.plan.settings.liveKinds
        return settings
    }

    /// Serves the sockets of the process; true if something happened.
    func step() -> Bool {
        let (isActive, left) = loop.step()
        timeLeft = left
        return isActive
    }

    /// Lets the process die before one of its next disk operations, or within it.
    func killSoon(_ step: Int, tears: Bool) { faults.arm(tears ? .tear : .kill, atStep: step) }

    /// Lets disk operations fail until `heal`.
    func fail(_ code: SQLiteError.Code, atStep step: Int) {
        machine.hasDiskTrouble = true
        machine.hadDiskTrouble = true
        faults.arm(.failOn(code), atStep: step)
    }

    func heal() {
        faults.heal()
        machine.hasDiskTrouble = false
    }

    func kill() { faults.kill() }

    /// Whether the process was killed and is not buried yet.
    var hasDied: Bool { faults.isDead && (client != nil || isStarting) }

    /// Removes what is left of a killed process.
    func bury() {
        simulation.note("\(name): dead")
        simulation.coverage.count("kill")
        end { $0.close() }
    }

    /// Ends the app in an orderly way.
    func close() {
        guard client != nil else { return }
        simulation.note("\(name): closed")
        end { $0.close() }
    }

    private func end(_ act: (LarderClient) -> Void) {
        generation += 1
        (tasksConfirmedAt, taskIDsAskedAt) = (nil, nil)
        errandsShown = []
        simulation.network.close(
            of: index,
            keepsSent: simulation.plan.deliversAfterDeath,
            now: simulation.clock.uptime.nanoseconds,
            &simulation.random
        )
        let old = client
        if let old { ended.append(Weak(old)) }
        client = nil
        isStarting = false
        watched = Watched()
        if let old { act(old) }
        if let old { judgeEnded(old.images, erased: false) }
        old?.cache.disk?.suspend()
        loop = SocketLoop(isStepped: true)
        timeLeft = nil
    }

    /// The number of ended processes of which something is left.
    var leftovers: Int { ended.count { $0.object != nil } }

    // MARK: Observers

    /// What the observers of the process have seen.
    struct Watched {
        /// The greatest version of each entity that an observer has seen, by observer.
        var versions: [String: [String: Int64]] = [:]
        var observers = 0
    }

    /// Observes what a person looks at, from the sign-in on: what is read before it is not that person's.
    func watch() {
        guard let client else { return }
        let generation = generation
        let feed = client.feed.snapshots()
        let judged: @Sendable (Timeline<Post>.List, Bool) -> Void = { [weak self] list, isFresh in
            self?.judge(.post, "", list, isFresh: isFresh, text: \.text)
        }
        observe("feed", feed, generation, judged) { list in
            (list.items.map { ($0.id, $0.version) }, list.items)
        }
        let profile = client.profiles.snapshots("user_2")
        observe("profile", profile, generation) { ([($0.id, $0.version)], []) }
        for id in simulation.ledger.conversations(of: machine.handle) {
            let lines = client.cache.snapshots(client.chat.messages(id))
            let judged: @Sendable (Timeline<Message>.List, Bool) -> Void = { [weak self] list, isFresh in
                self?.judge(.message, id, list, isFresh: isFresh, text: \.text)
            }
            observe("messages", lines, generation, judged) { list in (list.items.map { ($0.id, $0.version) }, []) }
        }
    }

    private func observe<Value: Sendable>(
        _ what: String,
        _ snapshots: some AsyncSequence<Snapshot<Value>, Never> & Sendable,
        _ generation: Int,
        _ judged: (@Sendable (Value, Bool) -> Void)? = nil,
        _ versions: @escaping @Sendable (Value) -> ([(String, Int64)], [Post])
    ) {
        watched.observers += 1
        // Another observer of the same list, since the sign-in, may be slower.
        let observer = "\(what) \(watched.observers)"
        Task { [weak self] in
            for await snapshot in snapshots {
                guard let self, generation == self.generation else { return }
                self.simulation.coverage.count("observed snapshots")
                guard let value = snapshot.value else { continue }
                let (items, posts) = versions(value)
                self.judge(observer, items)
                self.judge(posts)
                self.judgeTaps(posts)
                judged?(value, snapshot.freshness == .fresh)
            }
        }
    }

    /// Invariant 1: no observer sees an older version after a newer one.
    private func judge(_ what: String, _ items: [(String, Int64)]) {
        if !simulation.lags.isEmpty {
            // A deletion whose reply names no version does not outlast a replica that still has the item.
            let shown = Set(items.map(\.0))
            watched.versions[what]?.keys.filter { !shown.contains($0) }.forEach { watched.versions[what]?[$0] = nil }
        }
        for (id, version) in items where version > 0 {
            let before = watched.versions[what]?[id] ?? 0
            let drift: Int64 = 1 << 53
            if version % drift < before % drift {
                simulation.find(.monotonicReads, "\(name) \(what): \(id) version \(version) after \(before)")
            }
            watched.versions[what, default: [:]][id] = max(before, version)
        }
    }

    /// Invariant 2: a pending like is visible.
    private func judge(_ posts: [Post]) {
        guard let client, !posts.isEmpty else { return }
        // The snapshot may have been made between two decisions of this moment.
        if let tappedAgainAt, simulation.clock.uptime - tappedAgainAt <= .seconds(1) { return }
        let entries = client.cache.outbox.entries.filter { $0.state != .rejected }
        for entry in entries where entry.state == .pending {
            guard let tap = tap(of: entry) else { continue }
            // The snapshot may have been made before a tap of this moment.
            if let last = lastTaps[tap.postID], simulation.clock.uptime - last.at <= .seconds(1) { continue }
            guard let post = posts.first(where: { $0.id == tap.postID }) else { continue }
            // A second process of the account may have added it a moment ago.
            guard machine.processes == 1 else { continue }
            if post.likedByMe != tap.isLike, entries.last(where: { $0.scope == entry.scope })?.id == entry.id {
                simulation.find(.readYourWrites, "\(name): the pending like of \(post.id) is not shown")
            }
        }
    }
}

/// A tap of a person.
struct LastTap {
    let isLike: Bool
    let at: MonotonicTime
}

/// A machine of a person: its disk and its date, which the processes on it share.
///
/// `@unchecked Sendable`: as `Simulation`.
final class Machine: @unchecked Sendable {
    let index: Int
    private(set) var handle: String
    let directory: String
    let processes: Int
    /// Whether it can lose power. Only a machine with one process records what was synced.
    let recordsSyncs: Bool
    var dateError = DateError() { didSet { earlierDateErrors.append((oldValue, clock.uptime)) } }
    /// How far the date was off before, each time with the end.
    private var earlierDateErrors: [(error: DateError, end: MonotonicTime)] = []
    private(set) var booted: MonotonicTime
    /// The order of what its processes do.
    private(set) var stamps: StampSource
    private let clock: ManualClock
    /// Whether its disk is full or failing at present.
    var hasDiskTrouble = false
    /// Whether it ever was.
    var hadDiskTrouble = false
    /// When the latest request that has confirmed a resource began, on the simulation's clock, by its path.
    var confirmedAt: [String: MonotonicTime] = [:]
    /// When the reply to each exchange of a refresh token arrived, and how many processes had ended.
    var renewals: [[UInt8]: (at: MonotonicTime, ends: Int)] = [:]
    /// When its store was last damaged: of what was stored until then only the outbox and the metadata are left.
    var damagedAt: MonotonicTime?
    /// When the latest transfer was confirmed.
    var paidAt: MonotonicTime?
    /// Whether nobody has looked at the store of the account since it was changed.
    var hasNewAccount = false
    /// Whether it has lost power, so that writes may be lost that were acknowledged shortly before.
    private(set) var powerLosses = 0
    private var plan: FaultPlan?

    init(_ index: Int, _ setting: Plan.Machine, handle: String, directory: String, clock: ManualClock) {
        self.index = index
        self.handle = handle
        processes = setting.processes
        recordsSyncs = setting.losesPower
        self.directory = directory
        self.clock = clock
        booted = clock.uptime
        stamps = Self.stamps(clock)
    }

    private static func stamps(_ clock: ManualClock) -> StampSource {
        let start = clock.uptime
        // Stamps count microseconds.
        return StampSource(bootID: "\(start.nanoseconds)") { (clock.uptime - start).nanosecondsSaturating / 1_000 }
    }

    /// When its date was this one; more than once if it was set back.
    func moments(of date: WallTime) -> [WallTime] {
        var start = MonotonicTime(nanoseconds: .min)
        return (earlierDateErrors + [(error: dateError, end: MonotonicTime(nanoseconds: .max))]).compactMap {
            error,
            end in
            defer { start = end }
            var time = min(end, clock.uptime)
            // The error changes with the time if the clock drifts.
            for _ in 0..<4 { time = clock.uptime + (date - error.at(time) - clock.now) }
            return start <= time && time <= end ? clock.now + (time - clock.uptime) : nil
        }
    }

    func boot() {
        booted = clock.uptime
        stamps = Self.stamps(clock)
    }

    /// Another person has the machine from now on.
    func change(to handle: String) {
        self.handle = handle
        confirmedAt = [:]
        paidAt = nil
        renewals = [:]
        hasNewAccount = true
    }

    func newPlan() -> FaultPlan {
        let new = FaultPlan(recordsSyncs: true)
        plan = new
        return new
    }

    /// Loses what was not synced. No process may run.
    func losePower(_ random: inout SeededGenerator) throws {
        powerLosses += 1
        try plan?.losePower(using: &random)
        plan = nil
    }
}

/// An object that is not retained.
struct Weak<Object: AnyObject> {
    private(set) weak var object: Object?

    init(_ object: Object) { self.object = object }
}

/// Numbers for jitter. `@unchecked Sendable`: as `Simulation`.
final class SharedUnit: @unchecked Sendable {
    private var generator: SeededGenerator

    init(_ seed: UInt64) { generator = SeededGenerator(seed: seed) }

    func next() -> Double { generator.unit() }
}

/// Names the device in each request, for faults and for the journal.
struct NamedTransport: Transport {
    let device: String
    let base: any Transport
    /// Called with each reply, its status and when its request was sent.
    let onReply: @Sendable (TransportRequest, Int, MonotonicTime) -> Void
    let now: @Sendable () -> MonotonicTime

    private func named(_ request: TransportRequest) -> TransportRequest {
        var request = request
        request.fields.set("Larder-Device", device)
        return request
    }

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        let sentAt = now()
        let stream = try await base.open(named(request))
        let (status, body) = (stream.status, stream.body)
        // A reply that breaks off confirms nothing.
        let whole = TransportStream.Body { () async throws(TransportError) -> [UInt8]? in
            let piece = try await body.next()
            if piece == nil { onReply(request, status.code, sentAt) }
            return piece
        }
        return TransportStream(status: status, fields: stream.fields, body: whole, redirectedTo: stream.redirectedTo)
    }
}
