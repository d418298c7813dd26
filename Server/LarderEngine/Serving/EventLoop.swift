import LarderHTTP
import LarderTime
import Synchronization

/// A thread that waits for sockets, timers and jobs, and serves the connections that it accepted.
///
/// `execute`, `schedule`, `cancel` and `whenEnded` are safe from any thread; everything else belongs to the loop's own.
///
/// `@unchecked Sendable`: the stored properties below the line "Confined" are used on the loop's thread only. Other threads
/// reach it only through the mailbox, which is a `Mutex`, and `connection(_:)` traps on another thread.
package final class EventLoop: @unchecked Sendable {
    /// What the loop does in one of its next turns; `otherwise` is called if the loop ends first.
    typealias Job = (run: @Sendable () -> Void, otherwise: (@Sendable () -> Void)?)

    struct Mailbox {
        var jobs: [Job] = []
        var endings: [@Sendable () -> Void] = []
        var hasEnded = false
    }

    package let index: Int
    let configuration: ServerConfiguration
    let handler: any ExchangeHandler
    let connectionCount: ConnectionCounter
    private let workers: WorkerThreads
    let wakeUp: WakeUp
    let mailbox = Mutex(Mailbox())
    private let lastTimer = Atomic<UInt64>(0)
    private let thread = Atomic<UInt>(0)

    // Confined.
    /// Released when the loop ends: the last loop closes the port.
    var listener: Listener?
    let poller: any Poller
    var connections: [UInt64: Connection] = [:]
    /// The users of watched descriptors, except the listener and the wake-up.
    private var users: [Int32: any DescriptorUser] = [:]
    var pools: [UpstreamPool] = []
    private(set) var timers = TimerQueue()
    /// Connections with output to write, or with requests that were read and waited for earlier replies.
    var dirty: [Connection] = []
    /// How many of these have been flushed and have further requests.
    private var resumingCount = 0
    /// Jobs from the mailbox that have not run, the next one last.
    var jobs: [Job] = []
    var registration: EventRegistration?
    var nextSweep = MonotonicTime(nanoseconds: 0)
    var isListening = false
    var isStopping = false
    // By the system's clock, even if the server's clock is manual: they concern the process.
    var stopDeadline: MonotonicTime?
    /// Set while the system has no free descriptor for another connection.
    var nextListen: MonotonicTime?
    /// The time of the current turn, used on the hot path.
    private(set) var now = MonotonicTime(nanoseconds: 0)
    private(set) var date = DateField()
    /// Used by the connection that is being read, so that idle connections hold no buffer.
    var readBuffer = [UInt8](repeating: 0, count: 64 << 10)
    /// The maximum idle time between exchanges, in nanoseconds.
    let idleNanoseconds: Int64

    /// The maximum number of connections whose replies wait for each other.
    private static let repliesMaximum = 16
    /// The maximum number of jobs in a turn, so that connections are served in between.
    private static let jobsMaximum = 64

    init(
        _ index: Int,
        _ configuration: ServerConfiguration,
        _ listener: Listener,
        _ connectionCount: ConnectionCounter,
        _ workers: WorkerThreads,
        _ handler: any ExchangeHandler
    ) throws(EngineError) {
        self.index = index
        self.configuration = configuration
        self.listener = listener
        self.connectionCount = connectionCount
        self.workers = workers
        self.handler = handler
        idleNanoseconds = configuration.idleTimeout.nanosecondsSaturating
        wakeUp = try WakeUp()
        poller = configuration.poller == .poll ? PollPoller() : try EpollPoller()
    }

    // MARK: Jobs and timers, from any thread

    /// Runs a job on the loop, after earlier ones. A job that was not run when the loop ends, or comes after that, is discarded.
    ///
    /// - Parameter otherwise: runs if the job is discarded.
    package func execute(_ job: @escaping @Sendable () -> Void, orElse otherwise: (@Sendable () -> Void)? = nil) {
        let (mustWake, hasEnded) = mailbox.withLock { mailbox in
            guard !mailbox.hasEnded else { return (false, true) }
            mailbox.jobs.append((job, otherwise))
            return (mailbox.jobs.count == 1, false)
        }
        if mustWake, !isCurrent { wakeUp.signal() }
        if hasEnded { otherwise?() }
    }

    /// Runs a job on the loop after a delay on the server's monotonic clock.
    package func schedule(after delay: Duration, _ job: @escaping @Sendable () -> Void) -> TimerID {
        let id = TimerID(rawValue: lastTimer.add(1, ordering: .relaxed).newValue)
        let deadline = configuration.monotonic.uptime + delay
        execute { [self] in timers.add(id, at: deadline, job) }
        return id
    }

    package func cancel(_ timer: TimerID) {
        execute { [self] in timers.cancel(timer) }
    }

    /// Runs work that may take long or wait for a lock, on a thread that serves no connections. A stepped loop has no other thread, and
    /// runs it at once.
    package func offload(_ work: @escaping @Sendable () -> Void) {
        if configuration.isStepped { work() } else { workers.run(work) }
    }

    /// Whether the loop has no thread of its own.
    var isStepped: Bool { configuration.isStepped }

    /// Whether jobs wait behind the one that runs. On the loop's thread only.
    var hasJobs: Bool { !jobs.isEmpty || mailbox.withLock { !$0.jobs.isEmpty } }

    /// Whether the caller runs on this loop's thread.
    package var isCurrent: Bool { thread.load(ordering: .relaxed) == SystemThread.current }

    func whenEnded(_ body: @escaping @Sendable () -> Void) {
        let hasEnded = mailbox.withLock { mailbox in
            if !mailbox.hasEnded { mailbox.endings.append(body) }
            return mailbox.hasEnded
        }
        if hasEnded { body() }
    }

    // MARK: The thread

    func start() {
        registration = (configuration.monotonic as? any JumpingClock)?.onJump { [wakeUp] in wakeUp.signal() }
        if configuration.isStepped { begin() } else { SystemThread.start { [self] in run() } }
    }

    private func run() {
        begin()
        while !(isStopping && connections.isEmpty) { serveOnce(timeout: timeout()) }
        end()
    }

    private func begin() {
        thread.store(SystemThread.current, ordering: .relaxed)
        do { try poller.watch(wakeUp.descriptor, for: .read, isShared: false) } catch {
            preconditionFailure("The loop cannot watch its wake-up descriptor: \(error)")
        }
        listen(true)
        turn()
    }

    /// Waits, and serves what is ready; returns the number of ready descriptors.
    @discardableResult private func serveOnce(timeout: Int32) -> Int {
        let events = poller.wait(timeout: timeout).map { ($0.descriptor, $0.readiness, users[$0.descriptor]) }
        turn()
        for (descriptor, readiness, user) in events {
            if let user {
                // The descriptor may have been closed in this turn, and be that of another user by now.
                if users[descriptor] === user { user.ready(readiness) }
            } else if descriptor == wakeUp.descriptor {
                wakeUp.clear()
            } else if let listener, descriptor == listener.descriptor {
                acceptConnections(from: listener)
            }
            if dirty.count - resumingCount >= Self.repliesMaximum { flushReplies() }
        }
        flushReplies()
        runJobs()
        for job in timers.takeDue(now) { job() }
        if now >= nextSweep { sweep() }
        flushDirty()
        if let stopDeadline, SystemMonotonicClock().uptime >= stopDeadline {
            for connection in Array(connections.values) { connection.close() }
        }
        if let nextListen, SystemMonotonicClock().uptime >= nextListen { listen(true) }
        return events.count
    }

    /// Serves what is ready, without waiting, if `ServerConfiguration.isStepped`. Always on the thread that started the server.
    ///
    /// - Returns: whether there was or is something to do; otherwise nothing happens before a descriptor is ready or the time of
    ///   `untilNextStep` has passed.
    package func step() -> Bool {
        precondition(isCurrent && configuration.isStepped, "A loop with a thread of its own must not be stepped.")
        return serveOnce(timeout: 0) > 0 || timeout() == 0
    }

    /// The time until the loop has something to do without an event, in whole milliseconds; nil: none is known.
    package var untilNextStep: Duration? {
        let left = timeout()
        return left < 0 ? nil : .milliseconds(Int(left))
    }

    /// Updates the time of the turn.
    private func turn() {
        now = configuration.monotonic.uptime
        date.update(configuration.wall.now)
    }

    func timeout() -> Int32 {
        if !dirty.isEmpty || !jobs.isEmpty { return 0 }
        if mailbox.withLock({ !$0.jobs.isEmpty }) { return 0 }
        var next = users.isEmpty ? nil : Optional(nextSweep)
        if let timer = timers.next { next = min(next ?? timer, timer) }
        var left = next.map { ($0 - configuration.monotonic.uptime).nanosecondsSaturating } ?? .max
        // A loop that stops waits for its connections only.
        if let deadline = (connections.isEmpty ? nil : stopDeadline) ?? nextListen {
            left = min(left, (deadline - SystemMonotonicClock().uptime).nanosecondsSaturating)
        }
        guard left < .max else { return -1 }
        return Int32(clamping: max(0, left / 1_000_000 + 1))
    }

    private func runJobs() {
        if jobs.isEmpty {
            // After a burst the memory is released.
            if jobs.capacity > 16 * Self.jobsMaximum { jobs = [] }
            mailbox.withLock { swap(&$0.jobs, &jobs) }
            jobs.reverse()
        }
        var left = Self.jobsMaximum
        while left > 0, let job = jobs.popLast() {
            left -= 1
            job.run()
        }
    }

    // MARK: Connections

    /// The connection with that number, if it still exists. On the loop's thread only.
    func connection(_ id: UInt64) -> Connection? {
        precondition(isCurrent, "Connections must be used on their loop's thread.")
        return connections[id]
    }

    func watch(_ connection: Connection, for interest: Readiness) {
        do {
            try watch(connection.descriptor, for: interest, user: connection)
        } catch {
            connection.close()
        }
    }

    /// Removes a connection; it closes its descriptor itself.
    func forget(_ connection: Connection) {
        guard connections.removeValue(forKey: connection.id) != nil else { return }
        forget(connection.descriptor)
        connectionCount.leave()
    }

    func watch(_ descriptor: Int32, for interest: Readiness, user: any DescriptorUser) throws(EngineError) {
        if users.isEmpty { nextSweep = now + .seconds(1) }
        users[descriptor] = user
        try poller.watch(descriptor, for: interest, isShared: false)
    }

    func forget(_ descriptor: Int32) {
        if users.removeValue(forKey: descriptor) != nil { poller.forget(descriptor) }
    }

    /// Sends the finished replies of a turn. A connection with further requests is marked again, and goes on after all others.
    private func flushReplies() {
        for connection in exchange(&dirty, with: []) { connection.flush() }
        resumingCount = dirty.count
    }

    /// What is marked meanwhile waits for the next turn, after the other connections.
    func flushDirty() {
        resumingCount = 0
        for connection in exchange(&dirty, with: []) {
            if connection.mustResume { connection.process() } else { connection.flush() }
        }
    }

    private func sweep() {
        nextSweep = now + .seconds(1)
        for connection in Array(connections.values) { connection.checkDeadlines(now) }
        for pool in pools { pool.checkDeadlines(now) }
    }
}
