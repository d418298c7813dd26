import LarderResources
import LarderTime

/// What happens in a run, decided from its seed before it begins, so that parts of it can be left out.
struct Plan {
    struct Machine: Sendable {
        var handle: String
        /// The number of processes that share its store.
        var processes: Int
        var losesPower: Bool
    }

    struct Step: Sendable {
        /// Milliseconds since the devices have arrived.
        var at: Int
        var device: Int
        var act: Act
        /// Decides the rest: which post, which fault.
        var choice: UInt64

        var description: String { "\(at) ms, device \(device): \(act.rawValue) \(choice % 1_000)" }
    }

    let seed: UInt64
    var swarm: Swarm
    var machines: [Machine]
    var steps: [Step]
    /// The indices of the steps that are taken; nil: all.
    var kept: Set<Int>?
    /// The length of the part with faults.
    var duration: Duration
    /// What the run is about; nil: an earlier seed, whose acts are drawn from all.
    let theme: Theme?
    /// The first seed of the runs with the acts and themes that were added last.
    static let newestSeeds: UInt64 = 20_000
    /// The first seed of the runs with pictures.
    static let pictureSeeds: UInt64 = 40_000
    /// The first seed of the runs that bring about what the others seldom meet.
    static let rareSeeds: UInt64 = 60_000
    /// The first seeds of all kinds of runs, each as often as its share among twelve runs.
    private static let kinds: [UInt64] = [
        3_000, newestSeeds, rareSeeds, pictureSeeds, newestSeeds, 3_000, rareSeeds, newestSeeds, pictureSeeds, 2_000,
        rareSeeds, 1,
    ]

    /// Seeds of all kinds in turn.
    static func dealtSeeds(_ count: Int) -> [UInt64] {
        var next: [UInt64: UInt64] = [:]
        return (0..<count).map { index in
            let first = kinds[index % kinds.count]
            defer { next[first, default: first] += 1 }
            return next[first, default: first]
        }
    }

    /// The limits of the devices; nil: those that no run reaches.
    let limits: Limits?
    /// The limits of the pictures; nil: the run has none.
    let pictureLimits: PictureLimits?
    /// Whether the run has the later oracles: earlier seeds keep their meaning.
    var isStrict: Bool { theme != nil }
    /// Whether what a process has sent arrives also after its end.
    var deliversAfterDeath: Bool { theme == .late }

    /// - Parameters:
    ///   - minutes: the length of the part with faults; nil: from the seed, some minutes.
    ///   - people: the handles of those who may have a device.
    init(seed: UInt64, minutes: Int?, people: [String]) {
        self.seed = seed
        var random = SeededGenerator(seed: seed)
        theme = Theme(seed: seed)
        let isCalm = theme.map { $0 == .manners } ?? (seed % 10 == 0)
        swarm = Swarm(
            &random,
            isCalm: isCalm,
            hasLaterActs: seed >= 2_000,
            hasNewestActs: seed >= Self.newestSeeds,
            hasPictures: (Self.pictureSeeds..<Self.rareSeeds).contains(seed),
            isRare: seed >= Self.rareSeeds,
            theme: theme
        )
        limits = theme == .limits ? Limits(&random) : nil
        pictureLimits = theme == .pictures ? PictureLimits(&random) : nil
        machines = []
        var devices = 0
        var wanted = random.uniform(in: 2..<5)
        // The first machine has two processes in half of the runs; people may have two machines.
        var sharesStore = random.unit() < 0.5
        if let theme, theme != .everything {
            wanted = 2
            sharesStore = theme == .twoProcesses || theme == .overlaps && random.unit() < 0.5
        }
        let handles = [people[0], people[1], random.unit() < 0.5 ? people[0] : people[2], people[1]]
        while devices < wanted {
            let processes = machines.isEmpty && sharesStore ? 2 : 1
            let losesPower = processes == 1 && random.unit() < (theme == .power ? 1 : 0.3)
            machines.append(Machine(handle: handles[machines.count], processes: processes, losesPower: losesPower))
            devices += processes
        }
        let length = minutes.map { $0 * 60_000 } ?? random.uniform(in: 60_000..<360_000)
        duration = .milliseconds(length)
        let count = minutes.map { $0 * 12 } ?? random.uniform(in: 10..<60)
        steps = []
        for _ in 0..<count {
            steps.append(
                Step(
                    at: random.uniform(in: 0..<length),
                    device: random.uniform(in: 0..<devices),
                    act: swarm.draw(&random),
                    choice: random.next() >> 1
                )
            )
        }
        // Stable: steps at one time stay in order.
        steps = steps.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
    }
}

/// Small limits that devices reach.
struct Limits: Sendable {
    /// The least that a cache accepts.
    let memoryBytes = 64 << 10
    let memoryEntries = 64
    let diskBytes: Int64
    let operations: Int
    let operationBytes: Int

    init(_ random: inout SeededGenerator) {
        diskBytes = Int64(random.uniform(in: 16..<96)) << 10
        operations = random.uniform(in: 1..<5)
        operationBytes = random.uniform(in: 300..<900)
    }
}

/// What people, networks, disks, clocks and the server do.
enum Act: String, Sendable, CaseIterable {
    // People.
    case openFeed, scroll, pull, openProfile, openConversation, openBank, openTasks
    case like, likeTwice, writePost, editPost, deletePost, sendMessage, editMessage, deleteMessage
    case addTask, editTask, deleteTask, pay, editProfile, signOut, background, trimMemory
    // Other people, elsewhere.
    case otherWrites, otherLikes, otherEdits, otherDeletes
    // The device.
    case kill, killSoon, tearWrite, closeApp, losePower, diskFails, diskFull, diskHeals, clockForward, clockBack,
        openApp
    // Its network.
    case linkGood, linkSlow, linkLossy, linkCut, linkHalfOpen, linkRefused, linkBlackHole, linkChanged, sourceOffline
    // The server.
    case loseReplies, busy, duplicates, expireToken, resets, silence, truncates, malformed, lag, slow, journey, noFaults
    case liveFrames, feedFault, dialect, wrongValidators
    case limited, schemaDrift, dateSkew, clockDrift
    // Sequences, each of which brings about one situation.
    case tapOften, sendMany, writeAndChange, changeAndDie, payAndLosePower, openMuch, openTwice, decide
    case othersWriteMuch, postVanishes, expireAndDie, clockBackBriefly, damageStore, linkUneven, rejects, outage
    case changeAccount
    case dieWhileSending, clockBackSlightly, changeWhileReading, payWhileReading
    // Pictures.
    case showPictures, prefetchPictures, cancelPictures, pressPictures, trimPictures, damagePictures

    /// The acts that were added later: earlier seeds keep their plans.
    static let later: Set<Act> = [.limited, .schemaDrift, .dateSkew, .clockDrift]

    /// The acts that runs with a theme have.
    static let latest = sequencesByPerson.union([
        .othersWriteMuch, .postVanishes, .expireAndDie, .clockBackBriefly, .damageStore, .linkUneven, .rejects, .outage,
    ])

    /// The acts that runs from `Plan.newestSeeds` on have.
    static let newest: Set<Act> = [.changeAccount]

    /// The acts that runs from `Plan.rareSeeds` on have.
    static let rare: Set<Act> = [.dieWhileSending, .clockBackSlightly, .changeWhileReading, .payWhileReading]

    /// The acts that runs from `Plan.pictureSeeds` on have.
    static let withPictures = picturesByPerson.union([.damagePictures])

    private static let picturesByPerson: Set<Act> = [
        .showPictures, .prefetchPictures, .cancelPictures, .pressPictures, .trimPictures,
    ]

    private static let sequencesByPerson: Set<Act> = [
        .tapOften, .sendMany, .writeAndChange, .changeAndDie, .payAndLosePower, .openMuch, .openTwice, .decide,
        .changeAccount, .dieWhileSending, .changeWhileReading, .payWhileReading,
    ]

    var isByPerson: Bool {
        if Self.sequencesByPerson.contains(self) || Self.picturesByPerson.contains(self) { return true }
        guard let index = Self.allCases.firstIndex(of: self), let last = Self.allCases.firstIndex(of: .trimMemory)
        else {
            return false
        }
        return index <= last
    }
}

/// Which acts a run has, and how often: runs differ in kind (Groce et al., "Swarm testing", 2012).
struct Swarm {
    private let weights: [(act: Act, upTo: Int)]
    let shufflesJobs: Bool
    let hasHTTPCache: Bool
    let hasMonitor: Bool
    let hasMaintenance: Bool
    let restartsAtEnd: Bool
    let liveKinds: [LiveSync.Kind]

    /// Whether nothing disturbs the clients' manners, so that the rules of the conduct report hold.
    let isCalm: Bool

    init(
        _ random: inout SeededGenerator,
        isCalm: Bool,
        hasLaterActs: Bool,
        hasNewestActs: Bool,
        hasPictures: Bool,
        isRare: Bool,
        theme: Theme?
    ) {
        self.isCalm = isCalm
        let excluded = isCalm ? Act.disturbing : []
        var (weights, sum): ([(Act, Int)], Int) = ([], 0)
        for act in Act.allCases where hasLaterActs || !Act.later.contains(act) {
            guard theme != nil || !Act.latest.contains(act), hasNewestActs || !Act.newest.contains(act),
                hasPictures || !Act.withPictures.contains(act), isRare || !Act.rare.contains(act)
            else {
                continue
            }
            let usual = theme?.weights(of: act) ?? (act.isByPerson ? [0, 2, 6] : [0, 0, 1, 3])
            let weight =
                act == .signOut ? [0, 0, 0, 1][random.uniform(in: 0..<4)] : usual[random.uniform(in: 0..<usual.count)]
            guard weight > 0, !excluded.contains(act) else { continue }
            sum += weight
            weights.append((act, sum))
        }
        self.weights = weights
        shufflesJobs = random.unit() < 0.5
        hasHTTPCache = random.unit() < 0.2
        hasMonitor = random.unit() < 0.5
        hasMaintenance = random.unit() < 0.3
        restartsAtEnd = random.unit() < 0.3
        let kinds: [[LiveSync.Kind]] = [LiveSync.Kind.allCases, [.longPoll], [.webSocket, .longPoll], [.eventStream]]
        liveKinds = kinds[random.uniform(in: 0..<kinds.count)]
    }

    func draw(_ random: inout SeededGenerator) -> Act {
        let number = random.uniform(in: 0..<max(1, weights.last?.upTo ?? 1))
        return weights.first { number < $0.upTo }?.act ?? .openFeed
    }
}
