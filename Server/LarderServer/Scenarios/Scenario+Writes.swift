import LarderBackend
import LarderCoding
import LarderTime

extension Scenario {
    private static let patch = FaultMatch("PATCH")
    private static let patched = JournalFilter("PATCH")

    static let edits = [
        Scenario(
            "overlapping-edits",
            .edit,
            "another device edits the profile between this client's read and its write",
            "send If-Match; after 412 read again and repeat the change on the new version",
            variables: ["other": "pear"],
            exercise: [.requests(patched)],
            checks: [.biography("LARDER_WORDS"), .biography("other")]
        ) { world, _ in
            let bio = try world.text("/v1/me", "/bio")
            let body = JSONValue.members(["bio": .string(bio + " pear")])
            var act = ScriptedAction("PATCH", "/v1/me", as: "ana", body: String(decoding: body.encoded, as: UTF8.self))
            act.headers = ["If-Match": "*", "Content-Type": "application/merge-patch+json"]
            try world.set(ScriptedActor([act], when: patch))
        },
        Scenario(
            "lost-edit",
            .edit,
            "the edit is committed, and the reply is lost",
            "recognise the own edit when the repetition meets 412, and do not apply it twice",
            faults: [.scenario(.loseReply(.reset), patch)],
            checks: [
                .biography("LARDER_WORDS"),
                .informed(by: [patched, JournalFilter("GET", "/v1/me"), JournalFilter("GET", "/v1/profiles/*")]),
            ]
        ),
        Scenario(
            "stale-replica",
            .edit,
            "reads come from a replica that is one second behind",
            "do not write an old state over the own first edit",
            rounds: 2,
            faults: [.scenario(.lag(.init(age: .seconds(1))), FaultMatch("GET"), count: nil)],
            variables: ["LARDER_WORDS": "apple,pear"],
            exercise: [.fault("fault"), .requests(patched, atLeast: 2)],
            checks: [.biography("LARDER_WORDS")]
        ),
    ]

    private static func sending(
        _ name: String,
        _ task: ScenarioTask,
        _ problem: String,
        _ requirement: String,
        _ fault: Fault,
        _ check: ScenarioCheck
    ) -> Scenario {
        Scenario(
            name,
            task,
            problem,
            requirement,
            faults: [fault],
            checks: [check, .informed(by: [JournalFilter(fault.match.method, fault.match.path)])]
        ) { world, variables in
            guard task == .message else { return }
            let id = try world.text("/v1/conversations", "/items/0/id")
            variables["LARDER_PATH"] = "/v1/conversations/\(id)/messages"
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

    private static let posts = FaultMatch("POST", "/v1/posts")
    private static let messages = FaultMatch("POST", "/v1/conversations/*/messages")

    private static var batch: Fault {
        var batch = Fault.scenario(.reset, FaultMatch("POST", "/v1/likes"))
        batch.id = "fault-batch"
        return batch
    }

    static let sends = [
        sending(
            "lost-post",
            .post,
            "the post is published, and the reply is lost",
            "repeat it under the same Idempotency-Key: one post",
            .scenario(.loseReply(.reset), posts),
            .sentOnce
        ),
        sending(
            "duplicate-post",
            .post,
            "a proxy delivers the request twice",
            "send an Idempotency-Key: one post",
            .scenario(.duplicate, posts),
            .sentOnce
        ),
        sending(
            "lost-message",
            .message,
            "the message is stored, and the reply is lost",
            "repeat it with the same clientId: one message",
            .scenario(.loseReply(.reset), messages),
            .sentOnce
        ),
        sending(
            "message-in-an-outage",
            .message,
            "503 three times",
            "keep the message, and send it when the server is back",
            .scenario(.respond(.rejection(503)), messages, count: 3),
            .sentOnce
        ),
        Scenario(
            "lost-like",
            .like,
            "the connection is reset before anything is done",
            "repeat it: setting a like is idempotent",
            faults: [.scenario(.reset, FaultMatch("PUT", "/v1/posts/*/like")), batch],
            checks: [
                liked,
                .informed(by: [JournalFilter("PUT", "/v1/posts/*/like"), JournalFilter("POST", "/v1/likes")]),
            ]
        ) { world, variables in variables["LARDER_PATH"] = try likePath(world) },
    ]
}
