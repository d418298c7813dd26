import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Retry policy", .oneMinute)
struct RetryPolicyTests {
    private let now = WallTime(seconds: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT

    private func decide(
        _ outcome: RetryPolicy.Outcome,
        _ request: TransportRequest = TransportRequest(url: "http://h/"),
        policy: RetryPolicy = RetryPolicy(),
        attempt: Int = 1,
        elapsed: Duration = .zero,
        seed: UInt64 = 1
    ) -> RetryPolicy.Decision {
        var random = SeededGenerator(seed: seed)
        return policy.decision(
            after: outcome,
            to: request,
            attempt: attempt,
            elapsed: elapsed,
            now: now,
            random: &random
        )
    }

    private func reply(_ code: Int, _ fields: Fields = Fields()) -> RetryPolicy.Outcome {
        .reply(Status(code: code), fields)
    }

    private func isRetry(_ decision: RetryPolicy.Decision) -> Bool {
        if case .retry = decision { true } else { false }
    }

    @Test(arguments: [408, 425, 429, 500, 502, 503, 504, 507, 520, 521, 522, 524, 529, 530, 598, 599, 999])
    func `a transient status is retried`(code: Int) { #expect(isRetry(decide(reply(code)))) }

    @Test(arguments: [400, 401, 403, 404, 405, 406, 409, 410, 412, 413, 415, 418, 422, 428, 451, 499, 501, 505, 511])
    func `a permanent status is not retried`(code: Int) { #expect(decide(reply(code)) == .stop(.permanent)) }

    @Test(arguments: [100, 200, 204, 206, 301, 304, 307])
    func `a success or redirect is not retried`(code: Int) { #expect(decide(reply(code)) == .stop(.answered)) }

    @Test(arguments: [200, 403, 404, 502])
    func `HTML instead of JSON is classified as foreign with any status`(code: Int) {
        let html: Fields = [.contentType: "text/HTML; charset=utf-8", .retryAfter: "86400"]
        let json = TransportRequest(url: "http://h/", fields: [.accept: "application/json"])
        #expect(isRetry(decide(reply(code, html), json)))
        let post = TransportRequest(method: .post, url: "http://h/", fields: [.accept: "application/json"])
        #expect(decide(reply(code, html), post) == .stop(.unsafe))
        let page = TransportRequest(url: "http://h/", fields: [.accept: "text/html, */*;q=0.1"])
        #expect(decide(reply(200, html), page) == .stop(.answered))
    }

    @Test func `a request that is not idempotent is retried only with a key or if it was not sent`() {
        for method in [Method.post, .patch] {
            let bare = TransportRequest(method: method, url: "http://h/")
            let keyed = TransportRequest(method: method, url: "http://h/", fields: [.idempotencyKey: "k"])
            let lost = RetryPolicy.Outcome.failure(TransportError(.interrupted, ""))
            #expect(decide(reply(503), bare) == .stop(.unsafe))
            #expect(decide(lost, bare) == .stop(.unsafe))
            #expect(decide(.failure(TransportError(.timedOut, "")), bare) == .stop(.unsafe))
            #expect(isRetry(decide(reply(503), keyed)))
            #expect(isRetry(decide(lost, keyed)))
            #expect(isRetry(decide(.failure(TransportError(.unreachable, "")), bare)))
        }
        let empty = TransportRequest(method: .post, url: "http://h/", fields: [.idempotencyKey: ""])
        #expect(decide(reply(503), empty) == .stop(.unsafe))
        for method in [Method.get, .head, .options, .put, .delete] {
            #expect(isRetry(decide(reply(503), TransportRequest(method: method, url: "http://h/"))))
        }
    }

    @Test(arguments: [TransportError.Code.cancelled, .tooLarge, .invalidURL, .init(rawValue: "new")])
    func `a permanent failure is not retried`(code: TransportError.Code) {
        #expect(decide(.failure(TransportError(code, ""))) == .stop(.permanent))
    }

    @Test func `waits have full jitter below a doubling ceiling`() {
        let policy = RetryPolicy(
            attemptsMaximum: 100,
            elapsedMaximum: .seconds(10_000),
            base: .milliseconds(100),
            ceiling: .seconds(2)
        )
        for (attempt, longest) in [(1, 100), (2, 200), (3, 400), (5, 1_600), (6, 2_000), (90, 2_000)] {
            #expect(policy.backoffMaximum(attempt: attempt) == .milliseconds(longest))
            var (least, most, sum) = (Duration.seconds(100), Duration.zero, Duration.zero)
            for seed in UInt64(1)...400 {
                guard case .retry(let wait) = decide(reply(503), policy: policy, attempt: attempt, seed: seed) else {
                    Issue.record("attempt \(attempt) was the last")
                    return
                }
                (least, most, sum) = (min(least, wait), max(most, wait), sum + wait)
            }
            #expect(least < .milliseconds(longest) / 20 && most <= .milliseconds(longest))
            #expect(most > .milliseconds(longest) * 19 / 20)
            let mean = sum / 400
            #expect(mean > .milliseconds(longest) * 2 / 5 && mean < .milliseconds(longest) * 3 / 5)
        }
        #expect(decide(reply(503), seed: 7) == decide(reply(503), seed: 7))
    }

    @Test func `Retry-After is a minimum, in seconds and as a date, by the server's own clock`() {
        let policy = RetryPolicy(elapsedMaximum: .seconds(1_000), base: .milliseconds(100))
        let date = "Sun, 06 Nov 1994 08:50:07 GMT"
        let forms: [Fields] = [
            [.retryAfter: "30"], [.retryAfter: date],
            // The server's clock is an hour behind: the date is relative to its own `Date` field.
            [.retryAfter: "Sun, 06 Nov 1994 07:50:07 GMT", .date: "Sun, 06 Nov 1994 07:49:37 GMT"],
        ]
        for fields in forms {
            guard case .retry(let wait) = decide(reply(503, fields), policy: policy) else {
                Issue.record("\(fields) was not waited for")
                continue
            }
            #expect(wait >= .seconds(30) && wait <= .milliseconds(30_100))
        }
        for nonsense in ["", "soon", "-5", "1.5", "Sun, 99 Nov 1994 08:50:07 GMT"] {
            guard case .retry(let wait) = decide(reply(503, [.retryAfter: nonsense]), policy: policy) else {
                Issue.record("'\(nonsense)' was obeyed")
                continue
            }
            #expect(wait <= .milliseconds(100))
        }
        let past: Fields = [.retryAfter: "Sun, 06 Nov 1994 08:00:00 GMT"]
        #expect(isRetry(decide(reply(503, past), policy: policy)))
    }

    @Test(arguments: ["3600", "99999999999999999999999", "Fri, 31 Dec 1999 23:59:59 GMT"])
    func `a Retry-After beyond the elapsed maximum stops immediately`(text: String) {
        #expect(decide(reply(429, [.retryAfter: text])) == .stop(.elapsed))
    }

    @Test func `the numbers of attempts and the elapsed time are limited`() {
        let policy = RetryPolicy(attemptsMaximum: 3, elapsedMaximum: .seconds(5))
        #expect(isRetry(decide(reply(503), policy: policy, attempt: 2)))
        #expect(decide(reply(503), policy: policy, attempt: 3) == .stop(.attempts))
        #expect(decide(reply(503), policy: policy, attempt: 2, elapsed: .seconds(6)) == .stop(.elapsed))
        #expect(decide(reply(503), policy: .never) == .stop(.attempts))
        let absurd = RetryPolicy(
            attemptsMaximum: -3,
            elapsedMaximum: .seconds(-1),
            base: .seconds(-1),
            ceiling: .seconds(-1)
        )
        #expect(decide(reply(503), policy: absurd) == .stop(.attempts))
        #expect(absurd.backoffMaximum(attempt: .max) == .zero)
    }

    @Test func `retries never exceed the share and the reserve`() {
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
                } else if budget.withdraw() {
                    repetitions += 1
                }
                #expect(Double(repetitions) <= share * Double(requests) + reserve + 1e-3, "seed \(seed)")
            }
        }
        var tenth = RetryPolicy.Budget(share: 0.1, reserve: 0)
        for _ in 0..<10 { tenth.deposit() }
        let paid = tenth.withdraw()
        #expect(paid)
        var absurd = RetryPolicy.Budget(share: .nan, reserve: -.infinity)
        absurd.deposit()
        let free = absurd.withdraw()
        #expect(!free)
    }
}
