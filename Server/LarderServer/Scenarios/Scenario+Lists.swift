import LarderBackend
import LarderCoding

extension Scenario {
    /// A further page of the feed.
    private static var nextPage: FaultMatch {
        var match = FaultMatch("GET", "/v1/feed")
        match.query = ["after": "*"]
        return match
    }

    /// The feed by cursor, or by offset below it.
    private static let feeds = JournalFilter("GET", "/v1/**")
    private static let feed = JournalFilter("GET", "/v1/feed")

    private static func nextPage(_ reply: CannedReply) -> [Fault] { [.scenario(.respond(reply), nextPage)] }

    static let lists = [
        Scenario(
            "shifting-feed",
            .list,
            "a post of the first page is deleted while the second page is requested",
            "page by cursor, so that no other post is skipped",
            exercise: [.requests(feeds, atLeast: 2)],
            checks: [.converged(except: "deleted")]
        ) { world, variables in
            let id = try world.text("/v1/feed", "/items/3/id")
            variables["deleted"] = id
            var act = ScriptedAction("DELETE", "/v1/posts/" + id, as: try world.author(of: id))
            act.headers = ["If-Match": "*"]
            for path in ["/v1/feed", "/v1/feed/pages"] {
                try world.set(ScriptedActor([act], when: FaultMatch("GET", path), moment: .after))
            }
        },
        Scenario(
            "invalid-cursor",
            .list,
            "the cursor of the second page is rejected (400, invalid-cursor)",
            "begin again at the first page, and end with all posts",
            faults: nextPage(.rejection(400, problem: "invalid-cursor")),
            checks: [.converged()]
        ),
        Scenario(
            "page-fails",
            .list,
            "the second page is answered with 503 once",
            "ask for that page again, and not for those before it",
            faults: nextPage(.rejection(503)),
            checks: [.converged(), .noPageTwice("/v1/feed"), .requests(feed, 2...8)]
        ),
        Scenario(
            "portal-between-pages",
            .list,
            "the second page is a portal's HTML with 200",
            "do not take it for the end of the list",
            faults: nextPage(.page(200)),
            checks: [.converged()]
        ),
        Scenario(
            "schema-drift",
            .list,
            "a later version of the API adds members and cases, omits nulls and reorders members",
            "ignore what is unknown",
            exercise: [.requests(feeds)],
            checks: [.converged()]
        ) { world, _ in
            var drift = SchemaDrift(seed: 7)
            drift.enlargesIntegers = false
            world.drift = drift
        },
    ]
}

extension MockWorld {
    /// The handle of the author of a post.
    func author(of post: String) throws -> String {
        try text("/v1/profiles/" + (try text("/v1/posts/" + post, "/authorId")), "/handle")
    }
}
