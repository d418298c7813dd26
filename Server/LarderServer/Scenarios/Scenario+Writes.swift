import LarderBackend
import LarderCoding
import LarderTime

extension Scenario {
    private static let patch = FaultMatch("PATCH")
    private static let patched = JournalFilter("PATCH")

    private static func editing(
        _ name: String,
        _ problem: String,
        _ requirement: String,
        words: String = "apple",
        exercise: [ScenarioExercise] = [.fault("fault")],
        checks: [ScenarioCheck] = [.biography("LARDER_WORDS")],
        prepare: @escaping @Sendable (MockWorld, inout [String: String]) throws -> Void
    ) -> Scenario {
        Scenario(
            name,
            .edit,
            problem: problem,
            requirement: requirement,
            rounds: words.split(separator: ",").count,
            exercise: exercise,
            checks: checks
        ) { world, variables in
            variables["LARDER_PATH"] = "/v1/me"
            variables["LARDER_WORDS"] = words
            try prepare(world, &variables)
        }
    }

    static let edits = [
        editing(
            "overlapping-edits",
            "another device edits the profile between this client's read and its write",
            "send If-Match; after 412 read again and repeat the change on the new version",
            exercise: [.requests(patched)],
            checks: [.biography("LARDER_WORDS"), .biography("other")]
        ) { world, variables in
            variables["other"] = "pear"
            let bio = try world.text("/v1/me", "/bio")
            let body = JSONValue.members(["bio": .string(bio + " pear")])
            var act = ScriptedAction("PATCH", "/v1/me", as: "ana", body: String(decoding: body.encoded, as: UTF8.self))
            act.headers = ["If-Match": "*", "Content-Type": "application/merge-patch+json"]
            try world.set(ScriptedActor([act], when: patch))
        },
        editing(
            "lost-edit",
            "the edit is committed, and the reply is lost",
            "recognise the own edit when the repetition meets 412, and do not apply it twice",
            checks: [
                .biography("LARDER_WORDS"),
                .informed(by: [patched, JournalFilter("GET", "/v1/me"), JournalFilter("GET", "/v1/profiles/*")]),
            ]
        ) { world, _ in try world.set(Fault.scenario(.loseReply(.reset), patch)) },
        editing(
            "stale-replica",
            "reads come from a replica that is one second behind",
            "do not write an old state over the own first edit",
            words: "apple,pear",
            exercise: [.fault("fault"), .requests(patched, atLeast: 2)]
        ) { world, _ in
            try world.set(Fault.scenario(.lag(.init(age: .seconds(1))), FaultMatch("GET"), count: nil))
        },
    ]

    private static func sending(
        _ name: String,
        _ task: ScenarioTask,
        _ problem: String,
        _ requirement: String,
        _ fault: Fault,
        _ check: ScenarioCheck,
        path: @escaping @Sendable (MockWorld) throws -> String
    ) -> Scenario {
        Scenario(
            name,
            task,
            problem: problem,
            requirement: requirement,
            exercise: [.fault("fault")],
            checks: [check, .informed(by: [JournalFilter(fault.match.method, fault.match.path)])]
        ) { world, variables in
            variables["LARDER_PATH"] = try path(world)
            variables["LARDER_TEXT"] = "written once"
            try world.set(fault)
        }
    }

    private static let liked = ScenarioCheck { evidence in
        let path = (evidence.variables["LARDER_PATH"] ?? "").split(separator: "/").dropLast()
        let post = evidence.ask("/" + path.joined(separator: "/"))
        return post?["likedByMe"] == .bool(true) ? nil : "the post is not liked"
    }

    @Sendable private static func likePath(_ world: MockWorld) throws -> String {
        let posts = world.value("/v1/feed?limit=50")?["items"]?.array ?? []
        let post = posts.first { $0["likedByMe"] == .bool(false) }?["id"]?.string
        guard let post else { throw ScenarioError(description: "every post of the world is liked") }
        return "/v1/posts/\(post)/like"
    }

    @Sendable private static func conversationPath(_ world: MockWorld) throws -> String {
        "/v1/conversations/\(try world.text("/v1/conversations", "/items/0/id"))/messages"
    }

    private static let posts = FaultMatch("POST", "/v1/posts")
    private static let messages = FaultMatch("POST", "/v1/conversations/*/messages")

    static let sends = [
        sending(
            "lost-post",
            .post,
            "the post is published, and the reply is lost",
            "repeat it under the same Idempotency-Key: one post",
            .scenario(.loseReply(.reset), posts),
            .sentOnce("/v1/posts")
        ) { _ in "/v1/posts" },
        sending(
            "duplicate-post",
            .post,
            "a proxy delivers the request twice",
            "send an Idempotency-Key: one post",
            .scenario(.duplicate, posts),
            .sentOnce("/v1/posts")
        ) { _ in "/v1/posts" },
        sending(
            "lost-message",
            .message,
            "the message is stored, and the reply is lost",
            "repeat it with the same clientId: one message",
            .scenario(.loseReply(.reset), messages),
            .sentOnce("LARDER_PATH"),
            path: conversationPath
        ),
        sending(
            "message-in-an-outage",
            .message,
            "503 three times",
            "keep the message, and send it when the server is back",
            .scenario(.respond(.rejection(503)), messages, count: 3),
            .sentOnce("LARDER_PATH"),
            path: conversationPath
        ),
        Scenario(
            "lost-like",
            .like,
            problem: "the connection is reset before anything is done",
            requirement: "repeat it: setting a like is idempotent",
            exercise: [.fault("fault")],
            checks: [
                liked,
                .informed(by: [JournalFilter("PUT", "/v1/posts/*/like"), JournalFilter("POST", "/v1/likes")]),
            ]
        ) { world, variables in
            variables["LARDER_PATH"] = try likePath(world)
            var batch = Fault.scenario(.reset, FaultMatch("POST", "/v1/likes"))
            batch.id = "fault-batch"
            try world.set(Fault.scenario(.reset, FaultMatch("PUT", "/v1/posts/*/like")), batch)
        },
    ]
}
