import LarderEngine
import LarderTime

/// Sends the bytes of a reply, or the content of a channel, as slowly as faults require: with limited bandwidth, in small pieces, or with the
/// stalls of lost packets, and up to the byte at which a fault cuts it.
///
/// `@unchecked Sendable`: a data race cannot happen, because no two threads use a pacer at once, and each hands it to the next through a lock:
/// - Of a reply: the thread that calls `send(_:)` runs the first step. A step is the last use by its thread: it starts the next one through
///   a lock, by `Exchange.send(_:then:)` (the loop's mailbox) or by the clock's timer, and that one runs on the loop.
/// - Of a channel: the thread that makes it hands it to the loop with the reply (its mailbox) and does not keep it. From then on only the loop
///   uses it: the connection calls it there, and each step runs there, after a timer too. `isSending` is true from a step to its end, and
///   what `take(_:)` and `finish(_:)` then do is to append to `waiting` and to set `ending`.
final class Pacer: ChannelPacer, @unchecked Sendable {
    /// Called once, with the injected delay and the bytes that were not sent yet: the last ones, so that they are sent and the
    /// exchange ends in one turn of the loop; or none, because the client has gone.
    typealias Completion = @Sendable (_ spent: Duration, _ last: [UInt8]) -> Void

    /// What waits, and its offset.
    private var waiting = ByteQueue()
    private var offset = 0
    private let headCount: Int
    /// How many bytes are sent; more are dropped.
    private let limit: Int
    private var plan: ReplyPace
    private let device: String
    private let world: World
    private let exchange: Exchange
    private let completion: Completion
    /// Ends a channel whose content is complete.
    private var ending: (@Sendable () -> Void)?
    private var isSending = false
    private var isOver = false
    private var spent = Duration.zero
    private var isBad = false

    private static let segmentBytes = 1_460

    /// - Parameters:
    ///   - headCount: how many of the bytes are those of a head.
    ///   - limit: how many bytes are sent before the end.
    init(
        _ plan: ReplyPace,
        headCount: Int,
        limit: Int,
        device: String,
        world: World,
        exchange: Exchange,
        completion: @escaping Completion
    ) {
        self.headCount = headCount
        self.limit = limit
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

    /// Sends a whole reply of `limit` bytes: everything but the last piece, or until the client has gone. Then it calls the completion.
    func send(_ bytes: [UInt8]) {
        waiting.append(bytes)
        step()
    }

    // MARK: Channels

    var waitingBytes: Int { waiting.count }

    func opened() { take([]) }

    func take(_ content: [UInt8]) {
        guard !isOver, ending == nil else { return }
        let room = limit - offset - waiting.count
        waiting.append(content.count > room ? Array(content.prefix(room)) : content)
        if !isSending, !waiting.isEmpty || isComplete { step() }
    }

    func finish(_ end: @escaping @Sendable () -> Void) {
        guard !isOver, ending == nil else { return }
        ending = end
        if !isSending { ended() }
    }

    private func ended() {
        isOver = true
        ending.take()?()
    }

    // MARK: Steps

    /// Whether all that will be sent is there.
    private var isComplete: Bool { offset + waiting.count == limit }

    private func step() {
        isSending = true
        let (count, delay) = next()
        let start = waiting.start
        let piece = Array(waiting.bytes[start..<(start + count)])
        let isLast = isComplete && count == waiting.count
        spent += delay
        let send: @Sendable () -> Void = { [self, count] in
            waiting.removeFirst(count)
            offset += count
            guard !isLast else { return complete(piece) }
            exchange.send(piece) { [self] isConnected in
                // The line of a device carries nothing for a client that has gone.
                guard isConnected else { return complete([]) }
                guard waiting.isEmpty else { return step() }
                isSending = false
                if ending != nil { ended() }
            }
        }
        guard delay > .zero else { return send() }
        guard !exchange.isAbandoned else { return complete([]) }
        let loop = exchange.loop
        world.clock.wait(for: delay, of: exchange) { if loop.isCurrent { send() } else { loop.execute(send) } }
    }

    private func complete(_ last: [UInt8]) {
        isOver = true
        ending = nil
        completion(spent, last)
    }

    /// The size of the next piece, and its delay.
    private func next() -> (count: Int, delay: Duration) {
        guard plan.isSlow else { return (waiting.count, .zero) }
        var count = offset < headCount ? headCount - offset : waiting.count
        guard !world.control.hasEnded else { return (count, .zero) }
        var delay = offset == headCount ? plan.bodyDelay : .zero
        if let drip = plan.drip, offset >= headCount {
            count = min(count, drip.bytes)
            if offset > headCount { delay += drip.every }
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
        return (count, delay)
    }
}
