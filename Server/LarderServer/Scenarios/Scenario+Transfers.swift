import LarderBackend
import LarderCoding

extension Scenario {
    private static let transferPath = FaultMatch("POST", "/v1/transfers")
    private static let posted = JournalFilter("POST", "/v1/transfers")

    /// The replies that tell whether a transfer was made.
    private static let told = ScenarioCheck.informed(by: [posted, JournalFilter("GET", "/v1/transfers")])

    private static func transferring(
        _ name: String,
        _ problem: String,
        _ requirement: String,
        amounts: String = "125",
        fault: Fault? = nil,
        exercise: [ScenarioExercise] = [.fault("fault")],
        checks: [ScenarioCheck] = [told, .movedOnce, repeated],
        prepare: @escaping @Sendable (inout [String: String]) -> Void = { _ in }
    ) -> Scenario {
        Scenario(
            name,
            .transfer,
            problem,
            requirement,
            faults: fault.map { [$0] } ?? [],
            variables: ["LARDER_AMOUNTS": amounts],
            exercise: exercise,
            checks: checks
        ) { world, variables in
            try prepareTransfer(world, &variables)
            prepare(&variables)
        }
    }

    /// Finds an account with money and one of another person in the same currency.
    @Sendable static func prepareTransfer(_ world: MockWorld, _ variables: inout [String: String]) throws {
        let accounts = world.value("/v1/accounts")?["items"]?.array ?? []
        for source in accounts {
            guard let balance = source.value(at: "/balance/minorUnits")?.integer, balance > 1_000,
                let currency = source.value(at: "/balance/currency")?.string, let from = source["id"]?.string
            else { continue }
            for person in 2...12 {
                let theirs = world.value("/v1/accounts", as: "person\(person)")?["items"]?.array ?? []
                let target = theirs.first {
                    $0.value(at: "/balance/currency")?.string == currency && $0["status"] == .string("open")
                }
                guard let to = target?["id"]?.string else { continue }
                variables["LARDER_FROM"] = from
                variables["LARDER_TO"] = to
                variables["LARDER_CURRENCY"] = currency
                variables["balance"] = String(balance)
                return
            }
        }
        throw ScenarioError(description: "no two people of the world have accounts in one currency")
    }

    /// Transfers money from another device.
    @Sendable static func transfer(in world: MockWorld, _ variables: [String: String]) throws {
        let amount = JSONValue.members([
            "minorUnits": .integer(125), "currency": .string(variables["LARDER_CURRENCY"] ?? ""),
        ])
        let body = JSONValue.members([
            "fromAccountId": .string(variables["LARDER_FROM"] ?? ""),
            "toAccountId": .string(variables["LARDER_TO"] ?? ""), "amount": amount,
        ])
        var act = ScriptedAction(
            "POST",
            "/v1/transfers",
            as: "ana",
            body: String(decoding: body.encoded, as: UTF8.self)
        )
        act.headers = ["Idempotency-Key": "\"other-device\""]
        let reply = world.perform(act)
        guard reply.status < 300 else {
            throw ScenarioError(description: "the transfer was answered with \(reply.status)")
        }
    }

    /// A write that meets a fault which it survives if it is repeated under its key.
    private static let repeatable: [(name: String, problem: String, requirement: String, FaultAction, count: Int)] = [
        (
            "lost-reply", "the write is committed, and the reply is lost",
            "send it again under the same Idempotency-Key", .loseReply(.reset), 1
        ),
        (
            "lost-replies", "the reply is lost twice, without a reset", "keep the key until there is an answer",
            .loseReply(.close), 2
        ),
        (
            "duplicate-push", "a proxy delivers the request twice", "send an Idempotency-Key with every write",
            .duplicate, 1
        ),
        (
            "busy-server", "503 with Retry-After: 1 before anything is done",
            "wait, and send it again under the same key", .respond(.rejection(503, after: .seconds(1))), 1
        ),
    ]

    private static let repeated = ScenarioCheck.conduct(.keyMissing, .keyChanged, .retriedTooSoon)

    /// The cases in which something is sent once to a path of the user's own API.
    static func writes(to path: String) -> [Scenario] {
        let written = JournalFilter("POST", path)
        return repeatable.map { name, problem, requirement, action, count in
            Scenario(
                name,
                .write,
                problem,
                requirement,
                isOwn: true,
                faults: [.scenario(action, FaultMatch("POST", path), count: count)],
                variables: ["LARDER_PATH": path],
                checks: [.informed(by: [written]), .keyed(written), repeated]
            )
        }
    }

    static let transfers =
        repeatable.map { name, problem, requirement, action, count in
            transferring(name, problem, requirement, fault: .scenario(action, transferPath, count: count))
        } + [
            transferring(
                "key-reuse",
                "two transfers follow each other, and the first reply is lost",
                "use a new key for each transfer and not for each attempt",
                amounts: "125,250",
                fault: .scenario(.loseReply(.reset), transferPath),
                exercise: [.fault("fault"), .requests(posted, atLeast: 2)]
            ),
            transferring(
                "rejected-transfer",
                "the account has not enough money (422)",
                "do not repeat what is rejected for good",
                exercise: [.requests(posted)],
                checks: [.requests(posted, 1...1)]
            ) { variables in variables["LARDER_AMOUNTS"] = String((Int64(variables["balance"] ?? "") ?? 0) + 1) },
        ]
}
