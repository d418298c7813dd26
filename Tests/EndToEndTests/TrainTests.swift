import Larder
import LarderModels
import LarderServer
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

/// A person on a train: the server's journey of that name, whose tunnels the phone's system knows of. Both clocks are moved by
/// hand, together, and whatever is on its way arrives at its time.
private final class Ride: Sendable {
    private static let period: Duration = .seconds(300)
    /// When there is no network, from the beginning of each period.
    private static let gap: (start: Duration, end: Duration) = (.seconds(180), .seconds(210))

    let scene: ClientScene
    let sources = HandSources()
    let transport: CutTransport
    let client: LarderClient
    private let start: MonotonicTime
    private let surprised = Mutex(0)

    /// How many requests were on their way when the train went into a tunnel: nobody could know.
    var surprises: Int { surprised.withLock { $0 } }

    init(isLookedAfter: Bool) async throws {
        scene = try ClientScene(seed: 7)
        scene.world.clock.freeze()
        transport = CutTransport(watching: sources.network)
        client = try await scene.client(upkeep: isLookedAfter ? sources.upkeep() : .none, transport: transport)
        _ = try await client.cache.value(client.feed.newest)
        _ = try await client.cache.value(client.profiles.resource("user_2"))
        _ = try await client.feed.timeline.snapshot()
        try scene.world.set(.train)
        start = scene.world.clock.uptime
    }

    var elapsed: Duration { scene.world.clock.uptime - start }

    /// How often a request ran into the tunnel's wall.
    var collisions: Int {
        scene.world.faults.reduce(0) { sum, entry in
            if case .reset = entry.fault.action { sum + entry.strikes } else { sum }
        }
    }

    /// Lets time pass, and has the system notice when the train goes into a tunnel and comes out of it.
    func move(by duration: Duration) {
        var left = duration
        while left > .zero {
            let turns = Int(elapsed / Self.period)
            let phase = elapsed - Self.period * turns
            let edge = phase < Self.gap.start ? Self.gap.start : phase < Self.gap.end ? Self.gap.end : Self.period
            let step = min(left, edge - phase)
            // What is begun at the edge finds the tunnel.
            if step == edge - phase, edge == Self.gap.start {
                sources.network.set(isConnected: false)
                surprised.withLock { $0 += transport.inFlight }
            }
            scene.world.clock.advance(by: step)
            scene.clock.advance(by: step)
            if step == edge - phase, edge == Self.gap.end { sources.network.set(isConnected: true) }
            left -= step
        }
    }

    /// Does something, and lets the time pass that it takes.
    func perform(_ act: @escaping @Sendable () async -> Void) async {
        let isDone = Flag()
        Task {
            await act()
            isDone.set()
        }
        while !isDone.isSet, !Task.isCancelled { await letArrive() }
    }

    /// Lets what is on its way arrive.
    func calm() async {
        for _ in 0..<50 { await Task.yield() }
        while transport.inFlight > 0, !Task.isCancelled { await letArrive() }
    }

    private func letArrive() async {
        // Delays of replies are timers of the world, and it has no others; before one is set the request is on its way to the
        // server. A packet that is lost eight times in a row is more than a minute late.
        if let wait = scene.world.clock.untilNextTimer { move(by: max(wait, .milliseconds(1))) }
        await Task.yield()
    }
}

private final class Flag: Sendable {
    private let state = Mutex(false)

    var isSet: Bool { state.withLock { $0 } }

    func set() { state.withLock { $0 = true } }
}

@Suite("A journey by train", .oneMinute)
struct TrainTests {
    @Test func `ten minutes: nothing is sent that cannot succeed, and screens are always filled`() async throws {
        let ride = try await Ride(isLookedAfter: true)
        let client = ride.client
        let feeds = SequenceRecorder(client.feed.snapshots())
        let people = SequenceRecorder(client.profiles.snapshots("user_2"))
        let pages = client.feed.timeline
        let empty = Mutex<[String]>([])
        let refusals = Mutex<[String: Int]>([:])
        var hearts: [String: Bool] = [:]
        let posts = try await client.cache.value(client.feed.newest).items
        var turn = 0
        while ride.elapsed < .seconds(600) {
            turn += 1
            let at = ride.elapsed
            if turn % 3 == 0 {
                let post = posts[turn % posts.count]
                hearts[post.id] = !(hearts[post.id] ?? post.likedByMe)
                try client.likes.set(hearts[post.id] ?? false, post.id)
            }
            let (isPull, isScroll) = (turn % 4 == 0, turn % 6 == 0)
            await ride.perform {
                // Somebody opens the feed, and a profile: both must show something, whatever the network is like.
                for _ in 0..<1 {
                    do {
                        _ = try await client.cache.snapshot(client.feed.newest)
                        _ = try await client.profiles.profile("user_2")
                        _ = try await pages.snapshot()
                    } catch {
                        empty.withLock { $0.append("\(at): \(error)") }
                    }
                }
                do {
                    if isPull { try await client.cache.refresh(client.feed.newest) }
                    if isScroll { try await pages.loadOlder() }
                } catch {
                    let code = (error as? LarderError)?.code.rawValue ?? "\(error)"
                    refusals.withLock { $0[code, default: 0] += 1 }
                }
            }
            ride.move(by: .seconds(4))
            await ride.calm()
        }
        #expect(ride.transport.wasted.isEmpty, "\(ride.transport.wasted)")
        #expect(ride.collisions <= ride.surprises, "\(ride.collisions), of which \(ride.surprises) were on their way")
        #expect(empty.withLock { $0 }.isEmpty, "\(empty.withLock { $0 })")
        for snapshots in [
            feeds.elements.map { $0.value?.items.isEmpty }, people.elements.map { $0.value?.handle.isEmpty },
        ] {
            #expect(!snapshots.isEmpty && snapshots.allSatisfy { $0 == false })
        }
        #expect(refusals.withLock { $0["offline"] ?? 0 } > 0, "Who pulled in the tunnel was told.")
        let totals = client.telemetry.totals
        #expect(totals.networkChanges >= 4, "In and out, twice.")
        // Out of the tunnel everything that was done in it reaches the server.
        ride.scene.world.removeFaults()
        ride.move(by: .seconds(60))
        await ride.perform { try? await client.cache.outbox.drained() }
        let other = try await ride.scene.client(device: "tablet")
        for post in try await other.cache.value(other.feed.newest).items where hearts[post.id] != nil {
            #expect(post.likedByMe == hearts[post.id], "\(post.id)")
        }
        client.close()
    }

    @Test func `the same journey without anybody who looks after it runs into the tunnel's wall`() async throws {
        let ride = try await Ride(isLookedAfter: false)
        let client = ride.client
        while ride.elapsed < .seconds(215) {
            await ride.perform { _ = try? await client.cache.refresh(client.feed.newest) }
            ride.move(by: .seconds(5))
        }
        #expect(ride.collisions > ride.surprises && !ride.transport.wasted.isEmpty)
        client.close()
    }
}
