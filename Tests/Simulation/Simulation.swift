import LarderEngine
import LarderHTTP
import LarderServer
import LarderTLS
import LarderTime
import SimulationRuntime

/// One run: the backend, the devices, their networks, disks and clocks, all on one thread and on virtual time.
///
/// `@unchecked Sendable`: the process has one thread; a second one ends it (`SimulationRuntime`).
final class Simulation: @unchecked Sendable {
    let seed: UInt64
    let plan: Plan
    /// The time of everything; devices have clocks of their own that follow it.
    let clock: ManualClock
    let backend: MockBackend
    let world: MockWorld
    /// Those who may have a device.
    let people: [String]
    /// When people elsewhere have written something.
    var writtenAt: [WallTime] = []
    /// When people have refreshed a list.
    var refreshedAt: [WallTime] = []
    /// The tasks that others have added, and when.
    var errands: [String: MonotonicTime] = [:]
    /// The accounts of each person, by handle.
    var accountsByHandle: [String: Set<String>] = [:]
    /// Decides what the network and the executor do. People have decided before the run: their acts are in the plan.
    var random: SeededGenerator
    var network: Network
    var trace: Trace
    var devices: [Device] = []
    var ledger = Ledger()
    /// The places that people have written into their profiles.
    var places = 0
    /// Whether somebody has sent an upload again that the server may have carried out.
    var hasRetriedUpload = false
    var coverage = Coverage()
    private(set) var findings: [Finding] = []
    /// Scripts that have not ended, with their beginnings.
    private var running: [Int: (what: String, since: MonotonicTime)] = [:]
    private var lastScript = 0
    let loops: [EventLoop]
    /// The authority that the devices trust, in PEM; nil: they use http.
    let roots: [UInt8]?
    var handlesByID: [String: String] = [:]
    /// When replicas have lagged, by the true date; a period that goes on has no end.
    var lags: [(from: WallTime, to: WallTime?)] = []
    /// The people of the run.
    var handles: [String] { Set(owners).sorted() }
    /// The handle of the person whom each machine belongs to at first.
    var owners: [String] { plan.machines.map { people[$0.person] } }
    /// Jobs of the executor since the clock has moved; a run that never gets quiet does not end by itself.
    private var turns = 0
    private var moves = 0

    static let start = WallTime(seconds: 1_790_000_000)

    init(_ plan: Plan, _ stage: Stage, recordsLines: Bool) {
        seed = plan.seed
        self.plan = plan
        clock = stage.clock
        backend = stage.backend
        loops = stage.loops
        world = backend.main
        people = stage.people
        roots = plan.settings.isSecure == true ? stage.roots : nil
        random = SeededGenerator(seed: plan.seed ^ 0x5157_0001)
        network = Network(devices: plan.machines.reduce(0) { $0 + $1.processes })
        network.disturbsHandshakes = roots != nil && !plan.settings.isCalm
        trace = Trace(keepsLines: recordsLines)
    }

    /// The time since the run has begun.
    var elapsed: Duration { clock.uptime - MonotonicTime(nanoseconds: 0) }

    func note(_ line: String) {
        let milliseconds = elapsed.nanosecondsSaturating / 1_000_000
        trace.add("\(milliseconds / 1_000).\(String(milliseconds % 1_000 + 1_000).dropFirst()) \(line)")
    }

    /// Records a broken promise.
    func find(_ rule: Finding.Rule, _ detail: @autoclosure () -> String) {
        guard findings.count < 20 else { return }
        let finding = Finding(rule: rule, detail: detail())
        note("FINDING \(finding)")
        findings.append(finding)
    }

    func expect(_ holds: Bool, _ rule: Finding.Rule, _ detail: @autoclosure () -> String) {
        if !holds { find(rule, detail()) }
    }

    // MARK: Scripts

    /// Starts a script, and forgets it when it has ended.
    func start(_ what: String, _ body: @escaping @Sendable () async -> Void) {
        lastScript += 1
        let number = lastScript
        running[number] = (what, clock.uptime)
        Task {
            await body()
            running[number] = nil
        }
    }

    /// Runs a script to its end; false if it has not ended within the limit.
    @discardableResult
    func perform(_ what: String, within limit: Duration, _ body: @escaping @Sendable () async -> Void) -> Bool {
        start(what, body)
        let number = lastScript
        return pass(atMost: limit) { running[number] == nil }
    }

    /// The scripts that have been running for longer than that.
    func unfinished(for time: Duration) -> [String] {
        running.filter { clock.uptime - $0.value.since >= time }.sorted { $0.key < $1.key }.map(\.value.what)
    }

    // MARK: Time

    /// Lets time pass.
    func pass(_ duration: Duration) { _ = pass(atMost: duration) { false } }

    /// Lets time pass until a condition holds, for at most `limit`; whether it holds.
    @discardableResult func pass(atMost limit: Duration, until holds: () -> Bool) -> Bool {
        let end = clock.uptime + limit
        while findings.count < 20 {
            settle()
            if holds() { return true }
            guard clock.uptime < end else { return false }
            move(to: min(next ?? end, end))
        }
        return false
    }

    /// Runs everything that is ready, until nothing happens before the clock moves.
    private func settle() {
        var isActive = true
        while isActive {
            isActive = false
            while sim_job_count() > 0 {
                let count = Int(sim_job_count())
                let index = plan.settings.shufflesJobs && count > 1 ? random.uniform(in: 0..<min(count, 16)) : 0
                sim_run_job(Int32(index))
                turns += 1
                isActive = true
                if turns > 3_000_000 { return overrun() }
            }
            for device in devices where device.step() { isActive = true }
            for loop in loops where loop.step() { isActive = true }
            if network.pump(now: clock.uptime.nanoseconds, &random, &trace) { isActive = true }
            for device in devices where device.hasDied { device.bury() }
            turns += 1
            if turns > 3_000_000 { return overrun() }
        }
        turns = 0
    }

    private func overrun() {
        find(.hang, "the process does not get quiet at \(elapsed)")
        print(trace.lines.suffix(40).joined(separator: "\n"))
        sim_exit(3)
    }

    /// The time of the next event; nil if there is none.
    private var next: MonotonicTime? {
        var next = clock.nextWakeUp
        func consider(_ time: MonotonicTime?) { if let time { next = min(next ?? time, time) } }
        consider(network.next(after: clock.uptime.nanoseconds).map { MonotonicTime(nanoseconds: $0) })
        for device in devices { consider(device.timeLeft.map { clock.uptime + $0 }) }
        for loop in loops { consider(loop.untilNextStep.map { clock.uptime + $0 }) }
        let job = sim_next_job()
        if job < .max { consider(MonotonicTime(nanoseconds: job - Stage.systemOffset)) }
        return next
    }

    private func move(to time: MonotonicTime) {
        moves += 1
        if moves > 2_000_000 { overrun() }
        let distance = max(time - clock.uptime, .nanoseconds(1))
        let now = clock.uptime + distance
        sim_set_clock((clock.now + distance).nanosecondsSinceEpoch, now.nanoseconds + Stage.systemOffset)
        clock.advance(by: distance)
        sim_wake_jobs()
        trace.add(now.nanoseconds)
    }
}

/// What all runs begin with: a backend with a small world, made once and copied with the process.
struct Stage {
    /// The system's monotonic clock is that much ahead, as that of a machine that has been running.
    static let systemOffset: Int64 = 1_000_000_000

    let clock = ManualClock(Simulation.start)
    let backend: MockBackend
    let loops: [EventLoop]
    /// The handles of the world's people.
    let people: [String]
    /// The authority of the server's certificate, in PEM; nil without https.
    let roots: [UInt8]?

    /// - Parameters:
    ///   - pictures: the pictures of the world; nil: it has none.
    ///   - isSecure: whether https is served besides http.
    init(pictures: PictureSet?, isSecure: Bool) throws {
        sim_set_clock(clock.now.nanosecondsSinceEpoch, Self.systemOffset)
        var size = WorldSize()
        size.people = 8
        size.posts = 30
        size.conversations = 3
        size.messages = 24
        size.tasks = 8
        size.transfers = 20
        var configuration = MockBackend.Configuration()
        configuration.seed = 1
        configuration.journalCapacity = 20_000
        configuration.server.isStepped = true
        configuration.server.poller = .poll
        configuration.use(clock)
        var roots: [UInt8]?
        if isSecure {
            let authority = try TLSAuthority(name: "Simulated Authority", now: clock.now)
            let identity = try authority.issue(hosts: (0..<8).map(Network.address), now: clock.now)
            let server = try TLSServer { _ in identity }
            configuration.server.tls = { _ throws(TLSError) in SecureSession(try server.session()) }
            roots = Array(authority.certificate.pem.utf8)
        }
        self.roots = roots
        backend = try MockBackend.start(.generated(size, picturesFrom: pictures?.directory), configuration)
        loops = backend.loops
        people = try backend.developerTokens(8).map { String($0.token.dropFirst("dev-".count)) }
    }
}

/// A broken promise.
struct Finding: CustomStringConvertible {
    enum Rule: String, CaseIterable {
        case monotonicReads, readYourWrites, lostWrite, doubledWrite, reordered, money, freshness, convergence, conduct
        case outbox, bounds, privacy, hang, crash, disk, pictures, idle
    }

    let rule: Rule
    let detail: String

    var description: String { "\(rule.rawValue): \(detail)" }
}
