import Foundation
import LarderResources
import LarderTime

/// What happens in a run, decided before it begins.
///
/// A plan is drawn from a seed, or read from a file: plans that have failed are kept in `plans.jsonl`, and mean the same after a change of how plans are drawn.
struct Plan: Codable, Sendable {
    struct Machine: Codable, Sendable {
        /// Whose it is: the index of one of the world's people.
        var person: Int
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

    /// What the devices have and do besides the steps.
    struct Settings: Codable, Sendable {
        var shufflesJobs: Bool
        var hasHTTPCache: Bool
        var hasMonitor: Bool
        var hasMaintenance: Bool
        var restartsAtEnd: Bool
        /// The kinds of live channels, as raw values.
        var live: [String]
        /// Whether nothing disturbs the clients' manners, so that the rules of the conduct report hold.
        var isCalm: Bool
        /// Whether the devices use https; nil, in plans from before it could be chosen: they do not.
        var isSecure: Bool?

        var liveKinds: [LiveSync.Kind] { live.compactMap(LiveSync.Kind.init) }
    }

    /// What the plan has found, for a plan that is kept.
    var reason: String?
    /// Decides what the plan leaves open: delays, losses, the order of jobs.
    var seed: UInt64
    var theme: Theme
    /// The length of the part with faults, in milliseconds.
    var milliseconds: Int
    var settings: Settings
    /// The limits of the devices; nil: those that no run reaches.
    var limits: Limits?
    /// The limits of the pictures; nil: the run has none.
    var pictureLimits: PictureLimits?
    var machines: [Machine]
    var steps: [Step]

    var duration: Duration { .milliseconds(milliseconds) }
    /// Whether what a process has sent arrives also after its end.
    var deliversAfterDeath: Bool { theme == .late }

    /// What the run is called in reports.
    var name: String { reason.map { "plan \(seed) (\($0))" } ?? "seed \(seed)" }

    /// The plans in a file, one a line.
    static func read(_ path: String) throws(Options.Failure) -> [Plan] {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw Options.Failure(description: "The file '\(path)' cannot be read.")
        }
        var plans: [Plan] = []
        for (index, line) in text.split(separator: "\n").enumerated() {
            do { plans.append(try JSONDecoder().decode(Plan.self, from: Data(line.utf8))) } catch {
                throw Options.Failure(description: "Line \(index + 1) of '\(path)' is no plan: \(error)")
            }
        }
        return plans
    }

    /// The plan as a line of such a file.
    func line() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self)
    }
}

extension Plan.Step: Codable {
    /// A step is one string, so that a plan can be read: `12034 0 like 8812`.
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        let parts = text.split(separator: " ").map(String.init)
        guard parts.count == 4, let at = Int(parts[0]), let device = Int(parts[1]), let act = Act(rawValue: parts[2]),
            let choice = UInt64(parts[3])
        else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "'\(text)' is no step")
        }
        self.init(at: at, device: device, act: act, choice: choice)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode("\(at) \(device) \(act.rawValue) \(choice)")
    }
}

/// Small limits that devices reach.
struct Limits: Codable, Sendable {
    /// The least that a cache accepts.
    var memoryBytes: Int { 64 << 10 }
    var memoryEntries: Int { 64 }
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
enum Act: String, Codable, Sendable, CaseIterable {
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
    // A message with a photo, which is uploaded in pieces.
    case sendPhoto, interruptPhoto
    // Writes as data, and conflicts.
    case writeData, editTogether

    /// The acts that need pictures on the server.
    static let withPictures = picturesByPerson.union([.damagePictures])

    private static let picturesByPerson: Set<Act> = [
        .showPictures, .prefetchPictures, .cancelPictures, .pressPictures, .trimPictures,
    ]

    private static let sequencesByPerson: Set<Act> = [
        .tapOften, .sendMany, .writeAndChange, .changeAndDie, .payAndLosePower, .openMuch, .openTwice, .decide,
        .changeAccount, .dieWhileSending, .changeWhileReading, .payWhileReading, .sendPhoto,
        .interruptPhoto, .writeData, .editTogether,
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
