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

    static func rejection(_ status: Int, after wait: RetryAfter? = nil, problem: String? = nil) -> CannedReply {
        var reply = CannedReply(status: status)
        (reply.retryAfter, reply.problem) = (wait, problem)
        return reply
    }
}

extension Scenario {
    private static var first: Distribution { .fixed(.milliseconds(1_200)) }

    /// The cases in which a resource is read.
    ///
    /// - Parameter path: the resource, in the user's own API; nil: a profile of the demo, whose version is reported.
    static func reads(of path: String? = nil) -> [Scenario] {
        let target = path ?? "/v1/profiles/user_2"
        let match = FaultMatch("GET", String(target.prefix { $0 != "?" }))
        let read = JournalFilter(match.method, match.path)
        func reading(
            _ name: String,
            _ problem: String,
            _ requirement: String,
            _ action: FaultAction,
            count: Int = 1,
            stage: Fault.Stage? = nil,
            at: Int = 0,
            isSecure: Bool = false,
            atMost: Int = 6,
            checks: [ScenarioCheck] = []
        ) -> Scenario {
            Scenario(
                name,
                .read,
                problem,
                requirement,
                isSecure: isSecure,
                isOwn: path != nil,
                // A handshake is not that of a path yet.
                faults: [.scenario(action, isSecure ? FaultMatch() : match, count: count, stage: stage, at: at)],
                variables: ["LARDER_PATH": target],
                checks: [path == nil ? .shown() : .informed(by: [read]), .requests(read, 1...atMost)] + checks
                    + (isSecure ? [.secureOnly] : [])
            )
        }
        return [
            reading(
                "slow-first-byte",
                "the first byte of the reply takes 1.2 s",
                "wait, and send no second request beside the first",
                .latency(connect: nil, firstByte: first, body: nil),
                checks: [.conduct(.duplicateInFlight)]
            ),
            reading(
                "dripping-body",
                "the body comes 40 bytes at a time",
                "read to the end; bytes that arrive are progress",
                .drip(bytes: 40, every: .milliseconds(50)),
                checks: [.conduct(.duplicateInFlight)]
            ),
            reading(
                "retry-after-seconds",
                "503 with Retry-After: 1",
                "wait as long as the server says, then try again",
                .respond(.rejection(503, after: .seconds(1))),
                checks: [.conduct(.retriedTooSoon)]
            ),
            reading(
                "retry-after-date",
                "429 with Retry-After as an HTTP date",
                "understand both forms of Retry-After",
                .respond(.rejection(429, after: .date(inSeconds: 2))),
                checks: [.conduct(.retriedTooSoon)]
            ),
            reading(
                "server-errors",
                "500 twice, without Retry-After",
                "try again a few times",
                .respond(.rejection(500)),
                count: 2
            ),
            reading(
                "outage",
                "503 three times, without Retry-After",
                "back off: at most 12 requests, and the data in the end",
                .respond(.rejection(503)),
                count: 3,
                atMost: 12
            ),
            reading(
                "captive-portal",
                "200 with a page of HTML, twice",
                "take no page for data, and try again",
                .respond(.page(200)),
                count: 2
            ),
            reading(
                "bad-gateway-page",
                "502 with a page of HTML",
                "survive an error whose body is no JSON, and try again",
                .respond(.page(502))
            ),
            reading(
                "invalid-json",
                "a proxy damages the JSON",
                "store nothing that cannot be parsed, and try again",
                .malformedJSON
            ),
            reading(
                "truncated-body",
                "the connection closes before the announced length",
                "notice it by Content-Length, and try again",
                .truncate(.byte(10))
            ),
            reading(
                "broken-chunk",
                "a chunk has an invalid size",
                "treat broken framing as a failed transfer, and try again",
                .malformedChunk
            ),
            reading(
                "reset-mid-body",
                "the connection is reset in the middle of the body",
                "try again: a read is safe to repeat",
                .reset,
                stage: .body,
                at: 10
            ),
            reading(
                "empty-reply",
                "the connection closes without a byte",
                "try again: a read is safe to repeat",
                .empty
            ),
            reading(
                "server-restart",
                "the connection is reset, and the port is closed for 0.7 s",
                "try again after a rejected connection",
                .closeListener(.milliseconds(700))
            ),
            reading(
                "cut-handshake",
                "the connection closes in the TLS handshake, twice",
                "try again: nothing was sent",
                .close,
                count: 2,
                stage: .handshake,
                at: 100,
                isSecure: true
            ),
            reading(
                "stalled-handshake",
                "the TLS handshake stops halfway, and the connection stays open, once",
                "give up within some seconds, and try again: nothing was sent",
                .never,
                count: 1,
                stage: .handshake,
                at: 100,
                isSecure: true
            ),
            reading(
                "intercepted-https",
                "a captive portal answers https with a certificate for another host, twice",
                "reject it, send nothing over plain http instead, and try again",
                .certificate(.wrongHost),
                count: 2,
                isSecure: true
            ),
        ]
    }
}
