import LarderEvents
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import LarderDevice

@Suite("Network quality", .oneMinute)
struct NetworkQualityEstimatorTests {
    private typealias Estimator = NetworkQualityEstimator

    private func time(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: Int64(seconds * 1e9)) }

    /// Adds one sample each second from a time on. Returns the level after each.
    private func feed(
        _ estimator: inout NetworkQualityEstimator,
        _ sample: NetworkSample,
        from start: Double,
        count: Int
    ) -> [NetworkLevel] {
        (0..<count).map { estimator.add(sample, at: time(start + Double($0))) }
    }

    private let fast = NetworkSample(.reply, latency: .milliseconds(100))
    private let slow = NetworkSample(.reply, latency: .seconds(3))

    @Test func `without samples the level is good`() {
        var estimator = Estimator()
        #expect(estimator.look(at: time(100)) == .good && estimator.nextChange == nil)
        #expect(estimator.quality.latency == nil && estimator.quality.failureShare == nil)
    }

    @Test func `several slow responses make the level constrained, and one does not`() {
        var estimator = Estimator()
        #expect(feed(&estimator, slow, from: 0, count: 4) == [.good, .good, .constrained, .constrained])
    }

    @Test func `the level rises only after the recovery time and by its own thresholds`() {
        var estimator = Estimator()
        _ = feed(&estimator, slow, from: 0, count: 5)
        // Between the two thresholds nothing changes, for however long.
        let middling = NetworkSample(.reply, latency: .milliseconds(1_100))
        #expect(Set(feed(&estimator, middling, from: 5, count: 200)) == [.constrained])
        let better = feed(&estimator, fast, from: 205, count: 120)
        let turn = better.firstIndex(of: .good)
        #expect(turn.map { $0 >= 10 && $0 < 60 } == true, "\(turn ?? -1)")
        #expect(better.dropFirst(turn ?? 0).allSatisfy { $0 == .good })
    }

    @Test func `only large transfers count for throughput`() {
        var estimator = Estimator()
        let small = NetworkSample(.reply, latency: .milliseconds(50), bytes: 500, transfer: .seconds(1))
        #expect(Set(feed(&estimator, small, from: 0, count: 10)) == [.good])
        let large = NetworkSample(.reply, latency: .milliseconds(50), bytes: 50_000, transfer: .seconds(10))
        #expect(feed(&estimator, large, from: 10, count: 2).last == .constrained)
        #expect(estimator.quality.bytesPerSecond.map { abs($0 - 5_000) < 1 } == true)
    }

    @Test func `failures mean constrained, consecutive unreachable results offline, and one response ends that`() {
        var estimator = Estimator()
        #expect(feed(&estimator, NetworkSample(.broken), from: 0, count: 4).last == .constrained)
        #expect(
            feed(&estimator, NetworkSample(.unreachable), from: 4, count: 3) == [.constrained, .constrained, .offline]
        )
        #expect(estimator.look(at: time(1_000)) == .offline, "Time alone brings no server back.")
        #expect(estimator.add(fast, at: time(1_001)) == .constrained)
        #expect(estimator.look(at: time(1_012)) == .good)
    }

    @Test func `responses between failures prevent offline`() {
        var estimator = Estimator()
        for number in 0..<50 {
            let sample = number % 3 == 2 ? fast : NetworkSample(.unreachable)
            #expect(estimator.add(sample, at: time(Double(number))) != .offline)
        }
    }

    @Test func `old measurements do not prevent sending`() {
        var estimator = Estimator()
        _ = feed(&estimator, slow, from: 0, count: 20)
        var now = 20.0
        var looks = 0
        while estimator.look(at: time(now)) != .good, looks < 50 {
            guard let next = estimator.nextChange else { break }
            now = max(now + 0.001, Double(next.nanoseconds) / 1e9)
            looks += 1
        }
        #expect(estimator.level == .good && now < 200, "after \(now) s and \(looks) looks")
    }

    @Test func `while measurements say offline, single requests are allowed at growing intervals`() {
        var estimator = Estimator()
        for _ in 0..<10 { estimator.add(NetworkSample(.unreachable), at: time(0)) }
        var probes: [Double] = []
        for second in stride(from: 0.0, to: 300, by: 0.5) where estimator.takeProbe(at: time(second)) {
            probes.append(second)
            // No other request is admitted while the probe is in flight, and its failure extends the next interval.
            let again = estimator.takeProbe(at: time(second))
            #expect(!again)
            estimator.add(NetworkSample(.unreachable), at: time(second))
            estimator.add(NetworkSample(.unreachable), at: time(second))
        }
        let waits = zip(probes, [0] + probes).map { $0 - $1 }
        // Up to a quarter is left out at random, and this test looks every half second.
        #expect(waits.count >= 8, "\(waits)")
        for (wait, longest) in zip(waits, [2, 4, 8, 16, 32] + Array(repeating: 60.0, count: waits.count)) {
            #expect(wait <= longest + 0.5 && wait >= longest * 0.75 - 0.5, "\(waits)")
        }
        estimator.add(fast, at: time(300))
        #expect(estimator.takeProbe(at: time(300)) && estimator.takeProbe(at: time(300)))
    }

    @Test func `the level never changes faster than the recovery time, for random samples`() {
        for seed in UInt64(1)...100 {
            var generator = SeededGenerator(seed: seed)
            var estimator = Estimator()
            var now = 0.0
            var lastDrop = 0.0
            var level = NetworkLevel.good
            for _ in 0..<500 {
                now += generator.unit() * 3
                let sample: NetworkSample
                switch generator.uniform(in: 0..<6) {
                case 0: sample = NetworkSample(.unreachable)
                case 1: sample = NetworkSample(.broken)
                case 2: sample = slow
                default: sample = fast
                }
                let new = estimator.add(sample, at: time(now))
                if new < level { lastDrop = now }
                if new == .good, level != .good { #expect(now - lastDrop >= 10, "seed \(seed)") }
                level = new
            }
        }
    }

    @Test func `extreme samples do not trap`() {
        var estimator = Estimator()
        let absurd = [
            NetworkSample(.reply, latency: .seconds(-5), bytes: -1, transfer: .seconds(-1)),
            NetworkSample(.reply, latency: .seconds(Int64.max), bytes: .max, transfer: .nanoseconds(1)),
            NetworkSample(.reply, latency: .zero, bytes: .max, transfer: .zero),
        ]
        for sample in absurd { estimator.add(sample, at: time(5)) }
        // A clock that goes back changes nothing.
        estimator.add(fast, at: time(1))
        #expect(estimator.look(at: MonotonicTime(nanoseconds: .max)) != .offline)
    }

    @Test func `cancelled exchanges are no samples`() {
        for code in [ErrorCode<TransportError>.cancelled, .invalidURL, .tooLarge] {
            #expect(NetworkSample(TransportError(code, "")) == nil)
        }
        #expect(NetworkSample(TransportError(.unreachable, ""))?.outcome == .unreachable)
        #expect(NetworkSample(TransportError(.timedOut, ""))?.outcome == .broken)
    }
}
