import LarderBackend
import LarderTime

extension FaultMatch {
    /// The profile that the tasks read.
    static let profile = FaultMatch("GET", "/v1/profiles/user_2")
}

extension Fault {
    /// A fault of a scenario, named `fault`.
    static func scenario(
        _ action: FaultAction,
        _ match: FaultMatch,
        after: Int = 0,
        count: Int? = 1,
        stage: Stage? = nil,
        at: Int = 0
    ) -> Fault {
        var occurrence = Fault.Occurrence()
        occurrence.after = after
        occurrence.count = count
        return Fault(id: "fault", action, when: match, occurrence: occurrence, stage: stage, at: at)
    }
}

extension CannedReply {
    /// A page of HTML, as a portal or a proxy sends it.
    static func page(_ status: Int) -> CannedReply {
        var reply = CannedReply(status: status)
        reply.body = "<!doctype html><title>Welcome</title><h1>Please accept the terms</h1>"
        reply.contentType = "text/html; charset=utf-8"
        return reply
    }

    static func rejection(_ status: Int, after wait: RetryAfter? = nil) -> CannedReply {
        var reply = CannedReply(status: status)
        reply.retryAfter = wait
        return reply
    }
}

extension Scenario {
    /// The profile is read while a fault is set for it.
    static func reading(
        _ name: String,
        _ problem: String,
        _ requirement: String,
        _ fault: Fault,
        isSecure: Bool = false,
        atMost: Int = 6,
        checks: [ScenarioCheck] = []
    ) -> Scenario {
        Scenario(
            name,
            .read,
            problem: problem,
            requirement: requirement,
            isSecure: isSecure,
            exercise: [.fault("fault")],
            checks: [.shown(), .requests(JournalFilter("GET", "/v1/profiles/user_2"), 1...atMost)] + checks
        ) { world, variables in
            variables["LARDER_PATH"] = "/v1/profiles/user_2"
            variables["shown"] = "user_2"
            try world.set(fault)
        }
    }

    private static var first: Distribution { .fixed(.milliseconds(1_200)) }

    static let reads = [
        reading(
            "slow-first-byte",
            "the first byte of the reply takes 1.2 s",
            "wait, and send no second request beside the first",
            .scenario(.latency(connect: nil, firstByte: first, body: nil), .profile),
            checks: [.conduct(.duplicateInFlight)]
        ),
        reading(
            "dripping-body",
            "the body comes 40 bytes at a time",
            "read to the end; bytes that arrive are progress",
            .scenario(.drip(bytes: 40, every: .milliseconds(50)), .profile),
            checks: [.conduct(.duplicateInFlight)]
        ),
        reading(
            "retry-after-seconds",
            "503 with Retry-After: 1",
            "wait as long as the server says, then try again",
            .scenario(.respond(.rejection(503, after: .seconds(1))), .profile),
            checks: [.conduct(.retriedTooSoon)]
        ),
        reading(
            "retry-after-date",
            "429 with Retry-After as an HTTP date",
            "understand both forms of Retry-After",
            .scenario(.respond(.rejection(429, after: .date(inSeconds: 2))), .profile),
            checks: [.conduct(.retriedTooSoon)]
        ),
        reading(
            "server-errors",
            "500 twice, without Retry-After",
            "try again a few times",
            .scenario(.respond(.rejection(500)), .profile, count: 2)
        ),
        reading(
            "outage",
            "503 three times, without Retry-After",
            "back off: at most 12 requests, and the data in the end",
            .scenario(.respond(.rejection(503)), .profile, count: 3),
            atMost: 12
        ),
        reading(
            "captive-portal",
            "200 with a page of HTML, twice",
            "take no page for data, and try again",
            .scenario(.respond(.page(200)), .profile, count: 2)
        ),
        reading(
            "bad-gateway-page",
            "502 with a page of HTML",
            "survive an error whose body is no JSON, and try again",
            .scenario(.respond(.page(502)), .profile)
        ),
        reading(
            "invalid-json",
            "a proxy damages the JSON",
            "store nothing that cannot be parsed, and try again",
            .scenario(.malformedJSON, .profile)
        ),
        reading(
            "truncated-body",
            "the connection closes before the announced length",
            "notice it by Content-Length, and try again",
            .scenario(.truncate(.byte(60)), .profile)
        ),
        reading(
            "broken-chunk",
            "a chunk has an invalid size",
            "treat broken framing as a failed transfer, and try again",
            .scenario(.malformedChunk, .profile)
        ),
        reading(
            "reset-mid-body",
            "the connection is reset in the middle of the body",
            "try again: a read is safe to repeat",
            .scenario(.reset, .profile, stage: .body, at: 100)
        ),
        reading(
            "empty-reply",
            "the connection closes without a byte",
            "try again: a read is safe to repeat",
            .scenario(.empty, .profile)
        ),
        reading(
            "server-restart",
            "the connection is reset, and the port is closed for 0.7 s",
            "try again after a rejected connection",
            .scenario(.closeListener(.milliseconds(700)), .profile)
        ),
    ]
}
