import LarderBackend
import LarderCoding

extension Scenario {
    private static func listing(
        _ name: String,
        _ problem: String,
        _ requirement: String,
        exercise: [ScenarioExercise] = [.fault("fault")],
        checks: [ScenarioCheck] = [.converged()],
        prepare: @escaping @Sendable (MockWorld, inout [String: String]) throws -> Void
    ) -> Scenario {
        Scenario(
            name,
            .list,
            problem: problem,
            requirement: requirement,
            exercise: exercise,
            checks: checks
        ) { world, variables in
            variables["LARDER_PATH"] = "/v1/feed"
            variables["LARDER_LIMIT"] = "20"
            variables["LARDER_TYPES"] = "post"
            try prepare(world, &variables)
        }
    }

    /// A further page of the feed.
    private static var nextPage: FaultMatch {
        var match = FaultMatch("GET", "/v1/feed")
        match.query = ["after": "*"]
        return match
    }

    /// The feed by cursor, or by offset below it.
    private static let feeds = JournalFilter("GET", "/v1/**")
    private static let feed = JournalFilter("GET", "/v1/feed")

    static let lists = [
        listing(
            "shifting-feed",
            "a post of the first page is deleted while the second page is requested",
            "page by cursor, so that no other post is skipped",
            exercise: [.requests(feeds, atLeast: 2)],
            checks: [.converged(except: "deleted")]
        ) { world, variables in
            let id = try world.text("/v1/feed", "/items/3/id")
            variables["deleted"] = id
            let author = try world.author(of: id)
            var act = ScriptedAction("DELETE", "/v1/posts/" + id, as: author)
            act.headers = ["If-Match": "*"]
            for path in ["/v1/feed", "/v1/feed/pages"] {
                try world.set(ScriptedActor([act], when: FaultMatch("GET", path), moment: .after))
            }
        },
        listing(
            "invalid-cursor",
            "the cursor of the second page is rejected (400, invalid-cursor)",
            "begin again at the first page, and end with all posts"
        ) { world, _ in
            var rejection = CannedReply(status: 400)
            rejection.problem = "invalid-cursor"
            try world.set(Fault.scenario(.respond(rejection), nextPage))
        },
        listing(
            "page-fails",
            "the second page is answered with 503 once",
            "ask for that page again, and not for those before it",
            checks: [.converged(), .noPageTwice("/v1/feed"), .requests(feed, 2...8)]
        ) { world, _ in try world.set(Fault.scenario(.respond(.rejection(503)), nextPage)) },
        listing(
            "portal-between-pages",
            "the second page is a portal's HTML with 200",
            "do not take it for the end of the list"
        ) { world, _ in try world.set(Fault.scenario(.respond(.page(200)), nextPage)) },
        listing(
            "schema-drift",
            "a later version of the API adds members and cases, omits nulls and reorders members",
            "ignore what is unknown",
            exercise: [.requests(feeds)]
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
