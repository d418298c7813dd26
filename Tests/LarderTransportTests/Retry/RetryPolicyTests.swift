import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Retry policy", .oneMinute)
struct RetryPolicyTests {
    private let now = WallTime(seconds: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT

    @Test func `HTML instead of JSON is classified as foreign`() {
        let html: Fields = [.contentType: "text/HTML; charset=utf-8", .retryAfter: "86400"]
        for (accept, isForeign) in [
            ("application/json", true), ("text/html, */*;q=0.1", false), ("text/*", false), ("*/*", false),
        ] {
            let request = TransportRequest(url: "http://h/", fields: [.accept: accept])
            #expect(ForeignReply.isForeign(html, to: request) == isForeign, "\(accept)")
            #expect(!ForeignReply.isForeign([.contentType: "application/json"], to: request))
        }
        #expect(!ForeignReply.isForeign(html, to: TransportRequest(url: "http://h/")))
    }

    @Test func `a request that is not idempotent is repeatable only with a key`() {
        for method in [Method.post, .patch] {
            #expect(!RetryPolicy.isRepeatable(TransportRequest(method: method, url: "http://h/")))
            for (key, isRepeatable) in [("k", true), ("", false)] {
                let keyed = TransportRequest(method: method, url: "http://h/", fields: [.idempotencyKey: key])
                #expect(RetryPolicy.isRepeatable(keyed) == isRepeatable)
            }
        }
        for method in [Method.get, .head, .options, .put, .delete] {
            #expect(RetryPolicy.isRepeatable(TransportRequest(method: method, url: "http://h/")))
        }
    }

    @Test func `waits have a doubling ceiling`() {
        let policy = RetryPolicy(
            attemptsMaximum: 100,
            elapsedMaximum: .seconds(10_000),
            base: .milliseconds(100),
            ceiling: .seconds(2)
        )
        for (attempt, longest) in [(1, 100), (2, 200), (3, 400), (5, 1_600), (6, 2_000), (90, 2_000)] {
            #expect(policy.backoffMaximum(attempt: attempt) == .milliseconds(longest))
        }
    }

    @Test func `Retry-After is read in seconds and as a date, by the server's own clock`() {
        let date = "Sun, 06 Nov 1994 08:50:07 GMT"
        let forms: [Fields] = [
            [.retryAfter: "30"], [.retryAfter: date],
            // The server's clock is an hour behind: the date is relative to its own `Date` field.
            [.retryAfter: "Sun, 06 Nov 1994 07:50:07 GMT", .date: "Sun, 06 Nov 1994 07:49:37 GMT"],
        ]
        for fields in forms { #expect(RetryAfterField.wait(fields, now: now) == .seconds(30)) }
        for nonsense in ["", "soon", "-5", "1.5", "Sun, 99 Nov 1994 08:50:07 GMT"] {
            #expect(RetryAfterField.wait([.retryAfter: nonsense], now: now) ?? .zero == .zero, "\(nonsense)")
        }
        #expect(RetryAfterField.wait([.retryAfter: "Sun, 06 Nov 1994 08:00:00 GMT"], now: now) == .zero)
    }

    @Test func `a policy with values out of range has no delay`() {
        let absurd = RetryPolicy(
            attemptsMaximum: -3,
            elapsedMaximum: .seconds(-1),
            base: .seconds(-1),
            ceiling: .seconds(-1)
        )
        #expect(absurd.attemptsMaximum == 1 && absurd.backoffMaximum(attempt: .max) == .zero)
    }

    @Test func `retries never exceed the share and the reserve`() {
        let start = MonotonicTime(nanoseconds: 0)
        for seed in UInt64(1)...100 {
            var random = SeededGenerator(seed: seed)
            let share = random.unit()
            let reserve = Double(random.uniform(in: 0..<20))
            var budget = RetryPolicy.Budget(share: share, reserve: reserve)
            var (requests, repetitions) = (0, 0)
            for _ in 0..<2_000 {
                if random.uniform(in: 0..<3) > 0 {
                    budget.deposit()
                    requests += 1
                } else if budget.withdraw(at: start) {
                    repetitions += 1
                }
                #expect(Double(repetitions) <= share * Double(requests) + reserve + 1e-3, "seed \(seed)")
            }
        }
        var tenth = RetryPolicy.Budget(share: 0.1, reserve: 0)
        for _ in 0..<10 { tenth.deposit() }
        let paid = tenth.withdraw(at: start)
        #expect(paid)
        var absurd = RetryPolicy.Budget(share: .nan, reserve: -.infinity)
        absurd.deposit()
        let free = absurd.withdraw(at: start)
        #expect(!free)
    }

    @Test func `without a token one retry is allowed in each interval, and one that succeeds gives its token back`() {
        var budget = RetryPolicy.Budget(share: 0, reserve: 0, interval: .seconds(60))
        let start = MonotonicTime(nanoseconds: 0)
        let allowed = [0, 59, 60, 61, 119, 120].map { budget.withdraw(at: start + .seconds($0)) }
        #expect(allowed == [false, false, true, false, false, true])
        budget.refund()
        let (second, third) = (budget.withdraw(at: start + .seconds(121)), budget.withdraw(at: start + .seconds(122)))
        #expect(second && !third)
    }
}
