import Larder
import LarderDemo
import LarderModels
import LarderResources
import LarderServer
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderDevice
@testable import LarderTelemetry

/// A client in the server's journey `train`, whose system reports the tunnels. Both clocks are advanced together, and every reply
/// arrives at its time.
private final class Ride: Sendable {
    private static let period: Duration = .seconds(300)
    /// The tunnel: its start and end in each period.
    private static let gap: (start: Duration, end: Duration) = (.seconds(180), .seconds(210))

    let scene: ClientScene
    let sources = ManualSources()
    let transport: DisconnectableTransport
    let client: LarderClient
    private let start: MonotonicTime
    private let inFlight = Mutex(0)

    /// The number of requests that were in flight when a tunnel began.
    var inFlightAtTunnels: Int { inFlight.withLock { $0 } }

    init(hasServices: Bool) async throws {
        scene = try ClientScene(seed: 7)
        scene.world.clock.freeze()
        transport = DisconnectableTransport(watching: sources.network)
        client = try await scene.client(services: hasServices ? sources.services() : .none, transport: transport)
        _ = try await client.cache.value(client.feed.newest)
        _ = try await client.cache.value(client.profiles.resource("user_2"))
        _ = try await client.feed.timeline.snapshot()
        try scene.world.set(.train)
        start = scene.world.clock.uptime
    }

    var elapsed: Duration { scene.world.clock.uptime - start }

    /// The number of requests that a tunnel has interrupted.
    var interruptions: Int {
        scene.world.faults.reduce(0) { sum, entry in
            if case .reset = entry.fault.action { sum + entry.applications } else { sum }
        }
    }

    /// Advances the clocks, and reports the start and the end of a tunnel to the client.
    func move(by duration: Duration) {
        var left = duration
        while left > .zero {
            let turns = Int(elapsed / Self.period)
            let phase = elapsed - Self.period * turns
            let edge = phase < Self.gap.start ? Self.gap.start : phase < Self.gap.end ? Self.gap.end : Self.period
            let step = min(left, edge - phase)
            // A request at the start of the tunnel is interrupted.
            if step == edge - phase, edge == Self.gap.start {
                sources.network.set(isConnected: false)
                inFlight.withLock { $0 += transport.inFlight }
            }
            scene.world.clock.advance(by: step)
            scene.clock.advance(by: step)
            if step == edge - phase, edge == Self.gap.end { sources.network.set(isConnected: true) }
            left -= step
        }
    }

    /// Runs `act` to its end, and advances the clocks by the time that it takes.
    func perform(_ act: @escaping @Sendable () async -> Void) async {
        let isDone = Flag()
        Task {
            await act()
            isDone.set()
        }
        while !isDone.isSet, !Task.isCancelled { await advanceToNextReply() }
    }

    /// Lets all requests in flight finish.
    func settle() async {
        await rest()
        while transport.inFlight > 0, !Task.isCancelled { await advanceToNextReply() }
    }

    private func advanceToNextReply() async {
        // All timers of the world are delayed replies. Without a timer the request has not reached the server yet. A packet that is
        // lost eight times in a row is more than a minute late.
        if let wait = scene.world.clock.untilNextTimer { move(by: max(wait, .milliseconds(1))) }
        await Task.yield()
    }
}

private final class Flag: Sendable {
    private let state = Mutex(false)

    var isSet: Bool { state.withLock { $0 } }

    func set() { state.withLock { $0 = true } }
}

@Suite("Journey by train", .oneMinute)
struct TrainTests {
    @Test func `for ten minutes no request is sent in a tunnel, and screens always have content`() async throws {
        let ride = try await Ride(hasServices: true)
        let client = ride.client
        let feeds = SequenceRecorder(client.feed.snapshots())
        let people = SequenceRecorder(client.profiles.snapshots("user_2"))
        let pages = client.feed.timeline
        let failedScreens = Mutex<[String]>([])
        let rejections = Mutex<[String: Int]>([:])
        var likes: [String: Bool] = [:]
        let posts = try await client.cache.value(client.feed.newest).items
        var turn = 0
        while ride.elapsed < .seconds(600) {
            turn += 1
            let at = ride.elapsed
            if turn % 3 == 0 {
                let post = posts[turn % posts.count]
                likes[post.id] = !(likes[post.id] ?? post.likedByMe)
                try client.likes.set(likes[post.id] ?? false, post.id)
            }
            let (isPull, isScroll) = (turn % 4 == 0, turn % 6 == 0)
            await ride.perform {
                // The user opens the feed and a profile: both must have content on any network.
                do {
                    _ = try await client.cache.snapshot(client.feed.newest)
                    _ = try await client.profiles.profile("user_2")
                    _ = try await pages.snapshot()
                } catch {
                    failedScreens.withLock { $0.append("\(at): \(error)") }
                }
                do {
                    if isPull { try await client.cache.refresh(client.feed.newest) }
                    if isScroll { try await pages.loadOlder() }
                } catch {
                    let code = (error as? LarderError)?.code.rawValue ?? "\(error)"
                    rejections.withLock { $0[code, default: 0] += 1 }
                }
            }
            ride.move(by: .seconds(4))
            await ride.settle()
        }
        #expect(ride.transport.wasted.isEmpty, "Sent in a tunnel: \(ride.transport.wasted)")
        #expect(
            ride.interruptions <= ride.inFlightAtTunnels,
            "\(ride.interruptions) requests were interrupted; only \(ride.inFlightAtTunnels) were in flight when a tunnel began."
        )
        #expect(failedScreens.withLock { $0 }.isEmpty, "Without content: \(failedScreens.withLock { $0 })")
        let feedIsEmpty = feeds.elements.map { $0.value?.items.isEmpty }
        #expect(!feedIsEmpty.isEmpty && feedIsEmpty.allSatisfy { $0 == false }, "An observer of the feed had no posts.")
        let profileIsEmpty = people.elements.map { $0.value?.handle.isEmpty }
        #expect(!profileIsEmpty.isEmpty && profileIsEmpty.allSatisfy { $0 == false }, "An observer had no profile.")
        #expect(rejections.withLock { $0["offline"] ?? 0 } > 0, "A refresh in the tunnel must fail as offline.")
        let totals = client.telemetry.totals
        #expect(totals.networkChanges >= 4, "Two tunnels change the network level at least four times.")
        // After the tunnel all likes reach the server.
        ride.scene.world.removeFaults()
        ride.move(by: .seconds(60))
        await ride.perform { try? await client.cache.outbox.drained() }
        let other = try await ride.scene.client(device: "tablet")
        for post in try await other.cache.value(other.feed.newest).items where likes[post.id] != nil {
            #expect(post.likedByMe == likes[post.id], "\(post.id)")
        }
        client.close()
    }

    @Test func `without services requests are sent in the tunnel and interrupted`() async throws {
        let ride = try await Ride(hasServices: false)
        let client = ride.client
        while ride.elapsed < .seconds(215) {
            await ride.perform { _ = try? await client.cache.refresh(client.feed.newest) }
            ride.move(by: .seconds(5))
        }
        #expect(ride.interruptions > ride.inFlightAtTunnels)
        #expect(!ride.transport.wasted.isEmpty)
        client.close()
    }
}
