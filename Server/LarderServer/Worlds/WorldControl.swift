package import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// Settings of a world that change its replies, besides faults.
struct ReplySettings: Sendable, Hashable {
    /// The offset of each device's dates; `*` for all devices.
    var skews: [String: Duration] = [:]
    var dialect = Dialect()
    /// The seed of schema drift; nil for none.
    var drift: SchemaDrift?
}

/// The control plane of one world: its faults, gates, journal and settings. Safe from any thread.
package final class WorldControl: WorldHooks {
    /// The seed of all decisions about faults.
    let seed: UInt64
    let faults = FaultSet()
    let gates = GateSet()
    let journal: Journal
    let connections = ConnectionTable()
    let bandwidth = BandwidthTable()
    let actors = ScriptedActorSet()
    let recording = Recording()
    let heldReports = HeldReports()
    let keysInFlight = KeysInFlight()
    let played = PlayedReplies()
    private let lastScript = Mutex(ScriptProgress(stepCount: 0))
    private let settings = Mutex(ReplySettings())
    private let isPlain = Atomic<Bool>(true)
    /// Told the number of each commit while the store is locked: observers must only hand it on.
    let commitObservers = Observers<Int64>()
    private let lastEnding = Atomic<UInt64>(0)
    /// What ends with the world; nil after its end.
    private let endings = Mutex<[UInt64: @Sendable () -> Void]?>([:])

    init(seed: UInt64, journalCapacity: Int) {
        self.seed = seed
        journal = Journal(capacity: journalCapacity)
    }

    /// Whether anything is set that could affect an exchange on the path. Asked for every request.
    func affects(_ path: ArraySlice<UInt8>) -> Bool {
        !gates.isEmpty || !actors.isEmpty || !isPlain.load(ordering: .relaxed) || recording.isRecording
            || faults.mayMatch(path: path)
    }

    var current: ReplySettings { settings.withLock { $0 } }

    func change(_ body: (inout ReplySettings) -> Void) {
        settings.withLock { settings in
            body(&settings)
            isPlain.store(settings.skews.isEmpty && settings.drift == nil, ordering: .relaxed)
        }
    }

    /// The script that was started last.
    var script: ScriptProgress {
        get { lastScript.withLock { $0 } }
        set { lastScript.withLock { $0 = newValue } }
    }

    func skew(of device: String) -> Duration {
        let skews = current.skews
        return skews[device] ?? skews["*"] ?? .zero
    }

    /// Removes all settings and the reports of clients. The journal stays, and a recording goes on.
    func reset() {
        faults.removeAll()
        gates.removeAll()
        actors.removeAll()
        bandwidth.removeAll()
        heldReports.removeAll()
        played.reset()
        script = ScriptProgress(stepCount: 0)
        change { $0 = ReplySettings() }
    }

    // MARK: The end of the world

    /// Whether the world was destroyed.
    var hasEnded: Bool { endings.withLock { $0 == nil } }

    /// Removes all settings and ends what was registered with `whenEnded`.
    func end() {
        reset()
        recording.stop()
        for ending in endings.withLock({ endings in
            defer { endings = nil }
            return endings?.sorted { $0.key < $1.key } ?? []
        }) { ending.value() }
    }

    /// Calls `body` when the world is destroyed, at once if it was: for whatever else could go on without it. On any thread.
    ///
    /// - Returns: what forgets `body`, to be called when there is nothing left to end.
    func whenEnded(_ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        let id = lastEnding.add(1, ordering: .relaxed).newValue
        let isOver = endings.withLock { endings in
            endings?[id] = body
            return endings == nil
        }
        if isOver { body() }
        return { [self] in _ = endings.withLock { $0?.removeValue(forKey: id) } }
    }

    // MARK: Queries of the world

    package var dialect: Dialect { current.dialect }

    package func frameRecorder(for world: World, opening: Request, viewer: Int64) -> (any LiveFilter)? {
        guard journal.isEnabled else { return nil }
        return FrameFilter(LiveFault(), nil, world: world, opening: opening, subject: viewer)
    }

    package func committed(_ number: Int64) { commitObservers.tell(number) }
}

extension World {
    var control: WorldControl {
        guard let control = hooks as? WorldControl else {
            preconditionFailure("LarderServer makes each of its worlds with a WorldControl.")
        }
        return control
    }
}
