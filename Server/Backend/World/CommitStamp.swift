import Synchronization

/// The parts of the state that a reply can depend on.
struct Dependencies: OptionSet, Sendable, Hashable {
    let rawValue: UInt8

    static let profiles = Dependencies(rawValue: 1)
    static let posts = Dependencies(rawValue: 2)
    static let bank = Dependencies(rawValue: 4)
    static let chat = Dependencies(rawValue: 8)

    init(rawValue: UInt8) { self.rawValue = rawValue }

    init(_ kind: EntityKind) {
        switch kind {
        case .profile: self = .profiles
        case .post: self = .posts
        case .account, .transaction, .transfer: self = .bank
        case .conversation, .message: self = .chat
        }
    }
}

/// How often each part of the state has changed, readable from any thread without a lock.
///
/// Counters are raised after the commit and before its reply leaves, while the store is still held: who has seen a write
/// acknowledged can no longer be given a reply that was built before it.
final class CommitStamp: Sendable {
    private let profiles = Atomic<UInt64>(0)
    private let posts = Atomic<UInt64>(0)
    private let bank = Atomic<UInt64>(0)
    private let chat = Atomic<UInt64>(0)

    /// The sum of the counters in `dependencies`. Counters never fall, so two equal sums mean that none has moved.
    func value(of dependencies: Dependencies) -> UInt64 {
        var sum: UInt64 = 0
        if dependencies.contains(.posts) { sum &+= posts.load(ordering: .acquiring) }
        if dependencies.contains(.profiles) { sum &+= profiles.load(ordering: .acquiring) }
        if dependencies.contains(.bank) { sum &+= bank.load(ordering: .acquiring) }
        if dependencies.contains(.chat) { sum &+= chat.load(ordering: .acquiring) }
        return sum
    }

    func raise(_ dependencies: Dependencies) {
        if dependencies.contains(.posts) { posts.add(1, ordering: .releasing) }
        if dependencies.contains(.profiles) { profiles.add(1, ordering: .releasing) }
        if dependencies.contains(.bank) { bank.add(1, ordering: .releasing) }
        if dependencies.contains(.chat) { chat.add(1, ordering: .releasing) }
    }
}

/// All counters at one moment.
struct StampSnapshot: Sendable {
    private let profiles: UInt64
    private let posts: UInt64
    private let bank: UInt64
    private let chat: UInt64

    init(_ stamp: CommitStamp) {
        profiles = stamp.value(of: .profiles)
        posts = stamp.value(of: .posts)
        bank = stamp.value(of: .bank)
        chat = stamp.value(of: .chat)
    }

    func value(of dependencies: Dependencies) -> UInt64 {
        var sum: UInt64 = 0
        if dependencies.contains(.profiles) { sum &+= profiles }
        if dependencies.contains(.posts) { sum &+= posts }
        if dependencies.contains(.bank) { sum &+= bank }
        if dependencies.contains(.chat) { sum &+= chat }
        return sum
    }
}
