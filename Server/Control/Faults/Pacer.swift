import LarderEngine
import LarderTime
import Synchronization

/// How much each device's line carries, shared by all of its connections. Safe from any thread.
final class Lines: Sendable {
    private struct Key: Hashable {
        let device: String
        let isUp: Bool
    }

    /// When each line will have carried everything that was put on it.
    private let free = Mutex<[Key: MonotonicTime]>([:])
    private static let countMaximum = 10_000

    /// Puts bytes on a line; returns how long from now they will have arrived.
    func carry(_ bytes: Int, device: String, isUp: Bool, bytesPerSecond: Int, now: MonotonicTime) -> Duration {
        free.withLock { free in
            if free.count >= Self.countMaximum { free = free.filter { $0.value > now } }
            // Beyond the bound devices share a line, as they share a fault's count.
            let own = Key(device: device, isUp: isUp)
            let hasRoom = free[own] != nil || free.count < Self.countMaximum
            let key = hasRoom ? own : Key(device: "others", isUp: isUp)
            let start = max(now, free[key] ?? now)
            let time = Double(bytes) / Double(bytesPerSecond) * 1e9
            let end = start + .nanoseconds(Int64(min(time, 9e18)))
            free[key] = end
            return end - now
        }
    }
}

/// Sends the bytes of a reply as slowly as faults will have it: by a line's bandwidth, drop by drop, or with the stalls that
/// lost packets bring.
///
/// `@unchecked Sendable`: steps follow one another, each started by the one before through the clock's timer, so that no two
/// ever run at once.
final class Pacer: @unchecked Sendable {
    struct Plan {
        var bandwidth: Int?
        var drip: (bytes: Int, every: Duration)?
        var loss: (model: BurstLoss, generator: SeededGenerator)?
        /// How long passes between the head and the body.
        var bodyDelay: Duration = .zero
    }

    private let bytes: [UInt8]
    private let headCount: Int
    private var plan: Plan
    private let device: String
    private let world: World
    private let exchange: Exchange
    private let completion: @Sendable (Duration) -> Void
    private var offset = 0
    private var spent = Duration.zero
    private var isBad = false

    private static let segmentBytes = 1_460

    init(
        _ bytes: [UInt8],
        headCount: Int,
        _ plan: Plan,
        device: String,
        world: World,
        exchange: Exchange,
        completion: @escaping @Sendable (Duration) -> Void
    ) {
        self.bytes = bytes
        self.headCount = headCount
        self.plan = plan
        self.device = device
        self.world = world
        self.exchange = exchange
        self.completion = completion
        if var loss = plan.loss {
            // As if the line had been in use for ever: where a reply finds it does not depend on what was before.
            let (toBad, toGood) = (loss.model.goodToBad, loss.model.badToGood)
            isBad = toBad + toGood > 0 && loss.generator.unit() < toBad / (toBad + toGood)
            self.plan.loss = loss
        }
    }

    /// Sends everything, and then calls `completion` with the time that was spent on purpose.
    func start() { step() }

    private func step() {
        var end = offset
        var delay = Duration.zero
        // Pieces without a delay between them leave together.
        while end < bytes.count, delay == .zero {
            let (count, wait) = next(from: end)
            if wait > .zero, end > offset { break }
            delay = wait
            end += count
        }
        let piece = Array(bytes[offset..<end])
        offset = end
        spent += delay
        let send: @Sendable () -> Void = { [self] in
            if !piece.isEmpty { exchange.send(piece) }
            if offset < bytes.count { step() } else { completion(spent) }
        }
        if delay > .zero { _ = world.clock.schedule(after: delay, send) } else { send() }
    }

    /// How much goes next, and how long it takes to arrive.
    private func next(from position: Int) -> (Int, Duration) {
        if let waiting = lookedAhead, waiting.position == position {
            lookedAhead = nil
            return (waiting.count, waiting.delay)
        }
        var count = position < headCount ? headCount - position : bytes.count - position
        var delay = position == headCount ? plan.bodyDelay : .zero
        if let drip = plan.drip, position >= headCount {
            count = min(count, drip.bytes)
            if position > headCount { delay += drip.every }
        }
        if var loss = plan.loss {
            count = min(count, Self.segmentBytes)
            var timeout = loss.model.timeout
            for _ in 0..<8 {
                isBad =
                    isBad ? loss.generator.unit() >= loss.model.badToGood : loss.generator.unit() < loss.model.goodToBad
                guard loss.generator.unit() < (isBad ? loss.model.lossInBad : loss.model.lossInGood) else { break }
                delay += timeout
                timeout = timeout * 2
            }
            plan.loss = loss
        }
        if let rate = plan.bandwidth {
            count = min(count, max(1, rate / 20))
            let now = world.clock.uptime
            delay = max(
                delay,
                world.control.lines.carry(count, device: device, isUp: false, bytesPerSecond: rate, now: now)
            )
        }
        if delay > .zero, position > offset { lookedAhead = (position, count, delay) }
        return (count, delay)
    }

    /// A piece that was decided on and has to wait for the next step.
    private var lookedAhead: (position: Int, count: Int, delay: Duration)?
}
