import LarderBackend
import LarderEngine
import LarderTime

/// Sends the bytes of a reply as slowly as faults require: with limited bandwidth, in small pieces, or with the stalls of lost
/// packets.
///
/// `@unchecked Sendable`: steps are sequential, each started by the one before it through the clock's timer and the loop, so no two
/// run at once.
final class Pacer: @unchecked Sendable {
    /// Called once, with the injected delay and the bytes that were not sent yet: the last ones, so that they are sent and the
    /// exchange ends in one turn of the loop; or none, because the client has gone.
    typealias Completion = @Sendable (_ spent: Duration, _ last: [UInt8]) -> Void

    private let bytes: [UInt8]
    private let headCount: Int
    private var plan: ReplyPace
    private let device: String
    private let world: World
    private let exchange: Exchange
    private let completion: Completion
    private var offset = 0
    private var spent = Duration.zero
    private var isBad = false

    private static let segmentBytes = 1_460

    init(
        _ bytes: [UInt8],
        headCount: Int,
        _ plan: ReplyPace,
        device: String,
        world: World,
        exchange: Exchange,
        completion: @escaping Completion
    ) {
        self.bytes = bytes
        self.headCount = headCount
        self.plan = plan
        self.device = device
        self.world = world
        self.exchange = exchange
        self.completion = completion
        if var loss = plan.loss {
            // Starts from the model's stationary distribution, so that the state does not depend on earlier replies.
            let (toBad, toGood) = (loss.model.goodToBad, loss.model.badToGood)
            isBad = toBad + toGood > 0 && loss.generator.unit() < toBad / (toBad + toGood)
            self.plan.loss = loss
        }
    }

    /// Sends everything but the last piece, or until the client has gone, then calls `completion`.
    func start() { step() }

    private func step() {
        guard !world.control.hasEnded else { return completion(spent, Array(bytes[offset...])) }
        var end = offset
        var delay = Duration.zero
        // Pieces without a delay between them are sent together.
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
            guard offset < bytes.count else { return completion(spent, piece) }
            exchange.send(piece) { [self] isConnected in
                // The line of a device carries nothing for a client that has gone.
                if isConnected { step() } else { completion(spent, []) }
            }
        }
        guard delay > .zero else { return send() }
        guard !exchange.isAbandoned else { return completion(spent, []) }
        let clock = world.clock
        let wait = clock.wait(for: delay, send)
        exchange.end(while: { clock.isWaiting(wait) }, by: { clock.endWait(wait) })
    }

    /// The size of the next piece and its delay.
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
                world.control.bandwidth.carry(count, device: device, isUp: false, bytesPerSecond: rate, now: now)
            )
        }
        if delay > .zero, position > offset { lookedAhead = (position, count, delay) }
        return (count, delay)
    }

    /// A piece that was computed and waits for the next step.
    private var lookedAhead: (position: Int, count: Int, delay: Duration)?
}
