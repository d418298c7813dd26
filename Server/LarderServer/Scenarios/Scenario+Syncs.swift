import LarderBackend
import LarderCoding

extension Scenario {
    private static func syncing(
        _ name: String,
        _ problem: String,
        _ requirement: String,
        rounds: Int = 1,
        faults: [Fault] = [],
        injecting feedFault: ChangeFeedFault? = nil,
        exercise: [ScenarioExercise] = [.requests(changes)],
        checks: [ScenarioCheck] = [],
        afterFirstReport: (@Sendable (MockWorld, [String: String]) throws -> Void)? = nil
    ) -> Scenario {
        Scenario(
            name,
            .sync,
            problem,
            requirement,
            rounds: rounds,
            faults: faults,
            exercise: exercise,
            checks: [.reports(rounds), .converged(), .requests(changes, 1...20)] + checks,
            prepare: { world, _ in if let feedFault { try world.inject(feedFault) } },
            afterFirstReport: afterFirstReport
        )
    }

    private static let changes = JournalFilter("GET", "/v1/changes")
    private static let gone = JournalFilter("GET", "/v1/changes", status: "410")
    private static let feedOfChanges = FaultMatch("GET", "/v1/changes")

    /// Another device deletes a post, edits one and publishes one.
    @Sendable static func change(_ world: MockWorld, _ variables: [String: String]) throws {
        let deleted = try world.text("/v1/feed", "/items/2/id")
        var act = ScriptedAction("DELETE", "/v1/posts/" + deleted, as: try world.author(of: deleted))
        act.headers = ["If-Match": "*"]
        let reply = world.perform(act)
        guard reply.status < 300 else {
            throw ScenarioError(description: "deleting \(deleted) was answered with \(reply.status)")
        }
        let edited = try world.text("/v1/feed", "/items/4/id")
        let text = JSONValue.members(["text": .string("edited elsewhere")])
        try world.perform("PATCH", "/v1/posts/" + edited, as: try world.author(of: edited), text)
        try world.perform("POST", "/v1/posts", as: "person3", .members(["text": .string("written elsewhere")]))
    }

    static let syncs = [
        syncing(
            "tombstones",
            "another device deletes, edits and creates posts between two rounds",
            "apply upserts and deletions",
            rounds: 2,
            exercise: [.reports(1), .requests(changes)],
            afterFirstReport: change
        ),
        syncing(
            "resync",
            "all tokens expire (410) after a post was deleted",
            "read everything again, and drop what is not there any more",
            rounds: 2,
            exercise: [.reports(1), .requests(gone)],
            afterFirstReport: { world, variables in
                try change(world, variables)
                try world.inject(.expireAll)
            }
        ),
        syncing(
            "dropped-tombstones",
            "the server has forgotten its tombstones, and answers 410",
            "read everything again: a deletion that was missed stays a deletion",
            rounds: 2,
            exercise: [.reports(1), .requests(gone)],
            afterFirstReport: { world, variables in
                try change(world, variables)
                try world.inject(.dropTombstones)
            }
        ),
        syncing(
            "expired-midway",
            "the token expires after the first page (410)",
            "begin again, and end complete",
            injecting: .expireAfter(pages: 1),
            exercise: [.requests(gone)]
        ),
        syncing(
            "empty-page",
            "a page is empty and says that there is more",
            "go on until hasMore is false",
            injecting: .emptyPage
        ),
        syncing(
            "repeated-page",
            "a page is delivered twice",
            "apply it twice without harm, and come to an end",
            injecting: .repeatPage
        ),
        syncing(
            "reversed-page",
            "a page is in reverse order",
            "decide by version and not by order",
            injecting: .reversePage
        ),
        syncing(
            "token-expires-during-sync",
            "the access token expires after the first page (401)",
            "renew it once, and go on at the page that failed",
            faults: [.scenario(.expireToken, feedOfChanges, after: 1)],
            exercise: [.fault("fault"), .requests(JournalFilter("POST", "/v1/sessions"))],
            checks: [
                .noPageTwice("/v1/changes"), .requests(JournalFilter("POST", "/v1/sessions/refresh"), 0...1),
                .requests(JournalFilter("POST", "/v1/sessions"), 1...2),
            ]
        ),
        syncing(
            "interrupted-sync",
            "the connection is reset in the middle of the second page",
            "keep the pages that have arrived, and go on at the page that failed",
            faults: [.scenario(.reset, feedOfChanges, after: 1, stage: .body, at: 100)],
            exercise: [.fault("fault")],
            checks: [.noPageTwice("/v1/changes")]
        ),
    ]
}
