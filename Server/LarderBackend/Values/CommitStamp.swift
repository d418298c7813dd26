import Synchronization

/// The parts of the state that a reply can depend on.
package struct Dependencies: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package static let profiles = Dependencies(rawValue: 1)
    package static let posts = Dependencies(rawValue: 2)
    package static let bank = Dependencies(rawValue: 4)
    package static let chat = Dependencies(rawValue: 8)
    package static let tasks = Dependencies(rawValue: 16)
    package static let documents = Dependencies(rawValue: 32)
    /// Every part of the state.
    package static let all: Dependencies = [.profiles, .posts, .bank, .chat, .tasks, .documents]

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    init(_ kind: EntityKind) {
        switch kind {
        case .profile: self = .profiles
        case .post: self = .posts
        case .account, .transaction, .transfer: self = .bank
        case .conversation, .message: self = .chat
        case .task: self = .tasks
        case .document: self = .documents
        }
    }
}

/// Version counters of each part of the state, readable from any thread without a lock.
///
/// Counters are incremented after the commit and before its reply is sent, while the store is still locked: a client whose
/// write was acknowledged cannot be served a reply from before it.
package final class CommitStamp: Sendable {
    private let profiles = Atomic<UInt64>(0)
    private let posts = Atomic<UInt64>(0)
    private let bank = Atomic<UInt64>(0)
    private let chat = Atomic<UInt64>(0)
    private let tasks = Atomic<UInt64>(0)
    private let documents = Atomic<UInt64>(0)

    /// The sum of the counters in `dependencies`. Counters only increase, so two equal sums mean that none has changed.
    package func value(of dependencies: Dependencies) -> UInt64 {
        var sum: UInt64 = 0
        if dependencies.contains(.posts) { sum &+= posts.load(ordering: .acquiring) }
        if dependencies.contains(.profiles) { sum &+= profiles.load(ordering: .acquiring) }
        if dependencies.contains(.bank) { sum &+= bank.load(ordering: .acquiring) }
        if dependencies.contains(.chat) { sum &+= chat.load(ordering: .acquiring) }
        if dependencies.contains(.tasks) { sum &+= tasks.load(ordering: .acquiring) }
        if dependencies.contains(.documents) { sum &+= documents.load(ordering: .acquiring) }
        return sum
    }

    package func raise(_ dependencies: Dependencies) {
        if dependencies.contains(.posts) { posts.add(1, ordering: .releasing) }
        if dependencies.contains(.profiles) { profiles.add(1, ordering: .releasing) }
        if dependencies.contains(.bank) { bank.add(1, ordering: .releasing) }
        if dependencies.contains(.chat) { chat.add(1, ordering: .releasing) }
        if dependencies.contains(.tasks) { tasks.add(1, ordering: .releasing) }
        if dependencies.contains(.documents) { documents.add(1, ordering: .releasing) }
    }
}

/// All counters at one moment.
struct StampSnapshot: Sendable {
    private let profiles: UInt64
    private let posts: UInt64
    private let bank: UInt64
    private let chat: UInt64
    private let tasks: UInt64
    private let documents: UInt64

    init(_ stamp: CommitStamp) {
        profiles = stamp.value(of: .profiles)
        posts = stamp.value(of: .posts)
        bank = stamp.value(of: .bank)
        chat = stamp.value(of: .chat)
        tasks = stamp.value(of: .tasks)
        documents = stamp.value(of: .documents)
    }

    func value(of dependencies: Dependencies) -> UInt64 {
        var sum: UInt64 = 0
        if dependencies.contains(.profiles) { sum &+= profiles }
        if dependencies.contains(.posts) { sum &+= posts }
        if dependencies.contains(.bank) { sum &+= bank }
        if dependencies.contains(.chat) { sum &+= chat }
        if dependencies.contains(.tasks) { sum &+= tasks }
        if dependencies.contains(.documents) { sum &+= documents }
        return sum
    }
}
