import LarderResources
import LarderTime

extension Plan {
    /// Draws a plan; seeds in a row go through all themes.
    ///
    /// - Parameter minutes: the length of the part with faults; nil: from the seed, some minutes.
    init(seed: UInt64, minutes: Int?) {
        self.seed = seed
        var random = SeededGenerator(seed: seed)
        theme = Theme(seed: seed)
        let swarm = Swarm(&random, theme)
        settings = Settings(&random, isCalm: theme == .manners)
        limits = theme == .limits ? Limits(&random) : nil
        pictureLimits = theme == .pictures ? PictureLimits(&random) : nil
        machines = []
        var devices = 0
        var wanted = random.uniform(in: 2..<5)
        // The first machine has two processes in half of the runs; people may have two machines.
        var sharesStore = random.unit() < 0.5
        if theme != .everything {
            wanted = 2
            sharesStore = theme == .twoProcesses || theme == .overlaps && random.unit() < 0.5
        }
        let owners = [0, 1, random.unit() < 0.5 ? 0 : 2, 1]
        while devices < wanted {
            let processes = machines.isEmpty && sharesStore ? 2 : 1
            let losesPower = processes == 1 && random.unit() < (theme == .power ? 1 : 0.3)
            machines.append(Machine(person: owners[machines.count], processes: processes, losesPower: losesPower))
            devices += processes
        }
        milliseconds = minutes.map { $0 * 60_000 } ?? random.uniform(in: 60_000..<360_000)
        let count = minutes.map { $0 * 12 } ?? random.uniform(in: 10..<60)
        steps = []
        for _ in 0..<count {
            steps.append(
                Step(
                    at: random.uniform(in: 0..<milliseconds),
                    device: random.uniform(in: 0..<devices),
                    act: swarm.draw(&random),
                    choice: random.next() >> 1
                )
            )
        }
        // Stable: steps at one time stay in order.
        steps = steps.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
        settings.isSecure = random.unit() < 0.2
    }
}

extension Plan.Settings {
    init(_ random: inout SeededGenerator, isCalm: Bool) {
        self.isCalm = isCalm
        shufflesJobs = random.unit() < 0.5
        hasHTTPCache = random.unit() < 0.2
        hasMonitor = random.unit() < 0.5
        hasMaintenance = random.unit() < 0.3
        restartsAtEnd = random.unit() < 0.3
        let kinds: [[LiveSync.Kind]] = [LiveSync.Kind.allCases, [.longPoll], [.webSocket, .longPoll], [.eventStream]]
        live = kinds[random.uniform(in: 0..<kinds.count)].map(\.rawValue)
    }
}

/// Which acts a run has, and how often: runs differ in kind (Groce et al., "Swarm testing", 2012).
private struct Swarm {
    private let weights: [(act: Act, upTo: Int)]

    init(_ random: inout SeededGenerator, _ theme: Theme) {
        let excluded = theme == .manners ? Act.disturbing : []
        var (weights, sum): ([(Act, Int)], Int) = ([], 0)
        for act in Act.allCases where theme == .pictures || !Act.withPictures.contains(act) {
            let usual = theme.weights(of: act)
            let weight =
                act == .signOut ? [0, 0, 0, 1][random.uniform(in: 0..<4)] : usual[random.uniform(in: 0..<usual.count)]
            guard weight > 0, !excluded.contains(act) else { continue }
            sum += weight
            weights.append((act, sum))
        }
        self.weights = weights
    }

    func draw(_ random: inout SeededGenerator) -> Act {
        let number = random.uniform(in: 0..<max(1, weights.last?.upTo ?? 1))
        return weights.first { number < $0.upTo }?.act ?? .openFeed
    }
}
