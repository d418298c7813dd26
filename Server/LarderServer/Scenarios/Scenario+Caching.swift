import LarderBackend
import LarderCoding
import LarderTime

extension Scenario {
    private static let profilePath = "/v1/profiles/user_2"

    private static func readAccount(_ world: MockWorld, _ variables: inout [String: String]) throws {
        let id = try world.text("/v1/accounts", "/items/0/id")
        variables["LARDER_PATH"] = "/v1/accounts/" + id
        variables["shown"] = id
    }

    private static let account = JournalFilter("GET", "/v1/accounts/*")

    static let caching = [
        Scenario(
            "fresh-resource",
            .read,
            "a profile is fresh for 300 s and is shown twice within a second",
            "send one request",
            rounds: 2,
            exercise: [.reports(2)],
            checks: [.shown(), .requests(JournalFilter("GET", profilePath), 1...1), .conduct(.refetchedFresh)]
        ),
        Scenario(
            "unchanged-resource",
            .read,
            "an account must be validated each time (no-cache) and has not changed",
            "send If-None-Match, and accept 304",
            rounds: 2,
            exercise: [.reports(2), .requests(account, atLeast: 2)],
            checks: [.shown(), .conduct(.downloadedTwice)]
        ) { world, variables in try readAccount(world, &variables) },
        Scenario(
            "not-modified-fields",
            .read,
            "a 304 says that the resource is fresh for 300 s, which the 200 did not",
            "update the stored fields from the 304 (RFC 9111, section 3.2): the third visit sends nothing",
            rounds: 3,
            exercise: [.reports(3), .fault("not-modified")],
            checks: [.shown(), .requests(JournalFilter("GET", profilePath), 2...2)]
        ) { world, _ in
            guard let profile = world.value(profilePath) else { return }
            var full = CannedReply(status: 200)
            full.body = String(decoding: profile.encoded, as: UTF8.self)
            full.contentType = "application/json"
            full.headers = ["ETag": "\"one\"", "Cache-Control": "private, max-age=0"]
            var notModified = CannedReply(status: 304)
            notModified.headers = ["ETag": "\"one\"", "Cache-Control": "private, max-age=300"]
            var conditional = FaultMatch.profile
            conditional.headers = ["If-None-Match": "\"one\""]
            try world.set(
                Fault(id: "not-modified", .respond(notModified), when: conditional),
                Fault(id: "full", .respond(full), when: .profile)
            )
        },
        Scenario(
            "clock-ahead",
            .read,
            "the server's Date is a day ahead of the client's clock",
            "count freshness from Age and max-age, not from the difference of two clocks",
            rounds: 2,
            exercise: [.reports(2)],
            checks: [.shown(), .requests(JournalFilter("GET", profilePath), 1...1)]
        ) { world, _ in world.skewDates(of: "*", by: .seconds(86_400)) },
        Scenario(
            "clock-behind",
            .read,
            "the server's clock is a day behind, so every `expiresAt` seems to have passed",
            "count a token's lifetime from expiresIn, and renew it at most once",
            rounds: 3,
            exercise: [.reports(3), .requests(JournalFilter("POST", "/v1/sessions"))],
            checks: [
                .shown(), .requests(JournalFilter("POST", "/v1/sessions/refresh"), 0...1),
                .requests(JournalFilter("POST", "/v1/sessions"), 1...1),
            ]
        ) { world, variables in
            try readAccount(world, &variables)
            world.clock.run()
            world.clock.set(to: world.clock.now - .seconds(86_400))
        },
        Scenario(
            "stale-connection",
            .read,
            "the connection of the first visit died while it was idle",
            "open a new connection and send the request again",
            rounds: 2,
            exercise: [.fault("fault"), .requests(reset)],
            checks: [.reports(2), .shown(), .requests(account, 2...6)],
            prepare: { world, variables in try readAccount(world, &variables) },
            afterFirstReport: { world, _ in
                try world.set(Fault.scenario(.staleConnections, FaultMatch("GET", "/v1/accounts/*"), count: nil))
            }
        ),
        Scenario(
            "changed-resource",
            .read,
            "another device changes an account's data between two visits",
            "validate what says no-cache, and show the new version",
            rounds: 2,
            exercise: [.reports(1)],
            checks: [.reports(2), .shown()],
            prepare: { world, variables in
                try readAccount(world, &variables)
                try prepareTransfer(world, &variables)
                variables["LARDER_PATH"] = "/v1/accounts/" + (variables["LARDER_FROM"] ?? "")
                variables["shown"] = variables["LARDER_FROM"]
            },
            afterFirstReport: { world, variables in try transfer(in: world, variables) }
        ),
    ]

    private static var reset: JournalFilter {
        var filter = account
        filter.outcome = "reset"
        return filter
    }
}
