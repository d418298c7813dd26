import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

struct Latency: FaultEffect {
    var connect: Distribution?
    var firstByte: Distribution?
    var body: Distribution?

    static let kind = FaultKind(
        "latency",
        Latency(),
        at: [.afterRead, .beforeRead, .afterCommit],
        "delays",
        [
            .init("connect", \.connect, .duration, example: .fixed(.seconds(0.1))),
            .init("firstByte", \.firstByte, .duration, example: .uniform(.seconds(0.1), .seconds(0.5))),
            .init("body", \.body, .duration, example: .logNormal(median: .seconds(0.2), sigma: 0.5, maximum: nil)),
        ],
        need: .any(["firstByte", "connect", "body"])
    )

    var delaysReply: Bool { true }

    func delay(_ decision: FaultDecision, _ facts: ExchangeFacts, _ lines: BandwidthTable, now: MonotonicTime)
        -> Duration
    {
        var generator = decision.generator
        var delay = Duration.zero
        if let connect, facts.request.exchangeIndex == 1 {
            delay += connect.draw(&generator, ordinal: decision.ordinal)
        }
        if let firstByte { delay += firstByte.draw(&generator, ordinal: decision.ordinal) }
        return delay
    }

    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request) {
        guard let body else { return }
        var generator = SeededGenerator(seed: decision.seed &+ 1)
        reply.pace.bodyDelay += body.draw(&generator, ordinal: decision.ordinal)
    }
}

struct Bandwidth: FaultEffect {
    var down: Int?
    var up: Int?

    static let kind = FaultKind(
        "bandwidth",
        Bandwidth(),
        at: [.afterRead],
        "one line that all connections of the device share",
        [
            .init("downBytesPerSecond", \.down, .integer(1...1 << 40), example: 50_000),
            .init("upBytesPerSecond", \.up, .integer(1...1 << 40), example: 10_000),
        ],
        need: .any(["downBytesPerSecond", "upBytesPerSecond"])
    )

    var delaysReply: Bool { true }

    func delay(_ decision: FaultDecision, _ facts: ExchangeFacts, _ lines: BandwidthTable, now: MonotonicTime)
        -> Duration
    {
        guard let up else { return .zero }
        let bytes = facts.request.head.count + 4 + facts.request.body.count
        return lines.carry(bytes, device: facts.device, isUp: true, bytesPerSecond: up, now: now)
    }

    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request) {
        if let down { reply.pace.bandwidth = min(reply.pace.bandwidth ?? down, down) }
    }
}

struct Drip: FaultEffect {
    var bytes = 1
    var every = Duration.milliseconds(100)

    static let kind = FaultKind(
        "drip",
        Drip(),
        at: [.body],
        "a few bytes at a time",
        [
            .init("bytes", \.bytes, .integer(1...1 << 30), example: 10),
            .init("everySeconds", \.every, .seconds(maximum: 86_400), example: .seconds(0.5)),
        ]
    )

    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request) {
        reply.pace.drip = (bytes, every)
    }
}

extension BurstLoss: FaultEffect {
    static let kind = FaultKind(
        "loss",
        BurstLoss(),
        at: [.body],
        "stalls, as TCP shows packet loss; no byte is missing",
        [
            .init("goodToBad", \.goodToBad, .probability(), example: 0.1),
            .init("badToGood", \.badToGood, .probability(), example: 0.5),
            .init("lossInGood", \.lossInGood, .probability(), example: 0.01),
            .init("lossInBad", \.lossInBad, .probability(), example: 0.4),
            .init("timeoutSeconds", \.timeout, .seconds(maximum: 60), example: .seconds(0.2)),
        ]
    )

    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request) {
        reply.pace.loss = (self, decision.generator)
    }
}
