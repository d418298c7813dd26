import LarderCoding
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Bank", .oneMinute)
struct BankTests {
    /// An account of Ana, one of another person in the same currency, and that person's handle.
    private func accounts(_ scene: Scene) async throws -> (mine: JSONValue, other: String, handle: String) {
        let mine = try #require(try await scene.ask("GET", "/v1/accounts").json["items"]?[0])
        for person in 2...12 {
            let account = try #require(
                try await scene.ask("GET", "/v1/accounts", as: "person\(person)").json["items"]?[0]
            )
            if account["balance"]?["currency"] == mine["balance"]?["currency"] {
                return (mine, try #require(account["id"]?.string), "person\(person)")
            }
        }
        throw RawClient.Failure(reason: "nobody else has an account in this currency")
    }

    private func body(_ mine: JSONValue, _ other: String, _ units: Int64) -> String {
        let currency = mine["balance"]?["currency"]?.string ?? ""
        return
            #"{"fromAccountId":"\#(mine["id"]?.string ?? "")","toAccountId":"\#(other)","amount":{"minorUnits":\#(units),"currency":"\#(currency)"}}"#
    }

    @Test func `a transfer sent twice with one key moves the money once`() async throws {
        let scene = try Scene()
        let (mine, other, _) = try await accounts(scene)
        let before = mine["balance"]?["minorUnits"]?.integer ?? 0
        let first = try await scene.ask("POST", "/v1/transfers", body(mine, other, 500), ["Idempotency-Key": "\"k\""])
        let second = try await scene.ask("POST", "/v1/transfers", body(mine, other, 500), ["Idempotency-Key": "k"])
        #expect(first.status == 201 && second.status == 201)
        #expect(first.body == second.body && first.field("Location") == second.field("Location"))
        #expect(first.field("Idempotent-Replayed") == nil && second.field("Idempotent-Replayed") == "true")
        let after = try await scene.ask("GET", "/v1/accounts").json["items"]?[0]?["balance"]?["minorUnits"]
        #expect(after == .integer(before - 500))
        #expect(try scene.backend.main.ledgerFaults() == [])
        let found = try await scene.ask("GET", "/v1/transfers?idempotencyKey=k").json["items"]?[0]?["id"]
        #expect(try found == first.json["id"])
    }

    @Test func `a key in several field lines is one value`() async throws {
        let scene = try Scene()
        let (mine, other, _) = try await accounts(scene)
        func transfer(_ value: String) async throws -> RawReply {
            try await scene.ask("POST", "/v1/transfers", body(mine, other, 5), ["Idempotency-Key": value])
        }
        let quoted = try await transfer("\"a\"\r\nIdempotency-Key: \"b\"")
        #expect(quoted.status == 400 && quoted.problem == "invalid-parameter")
        #expect(try await transfer("a\r\nIdempotency-Key: b").status == 201)
        // Neither line was a key by itself.
        for key in ["a", "b"] { #expect(try await transfer(key).field("Idempotent-Replayed") == nil) }
        #expect(try await transfer("a, b").field("Idempotent-Replayed") == "true")
        #expect(await scene.backend.main.conduct.findings.isEmpty)
    }

    @Test func `a key is bound to its body, its caller and its day`() async throws {
        let scene = try Scene()
        let (mine, other, handle) = try await accounts(scene)
        let key = ["Idempotency-Key": "k"]
        #expect(try await scene.ask("POST", "/v1/transfers", body(mine, other, 1), key).status == 201)
        #expect(
            try await scene.ask("POST", "/v1/transfers", body(mine, other, 2), key).problem == "idempotency-key-reused"
        )
        let theirs = try #require(try await scene.ask("GET", "/v1/accounts", as: handle).json["items"]?[0])
        let back = body(theirs, mine["id"]?.string ?? "", 2)
        #expect(try await scene.ask("POST", "/v1/transfers", as: handle, back, key).field("Idempotent-Replayed") == nil)
        scene.clock.advance(by: .seconds(86_401))
        #expect(
            try await scene.ask("POST", "/v1/transfers", body(mine, other, 2), key).field("Idempotent-Replayed") == nil
        )
    }

    @Test func `a transfer without sufficient funds is rejected, and the rejection is replayed`() async throws {
        let scene = try Scene()
        let (mine, other, _) = try await accounts(scene)
        let much = body(mine, other, 900_000_000)
        let first = try await scene.ask("POST", "/v1/transfers", much, ["Idempotency-Key": "k"])
        #expect(first.status == 409 && first.problem == "insufficient-funds")
        #expect(try first.json["balance"] == mine["balance"])
        #expect(
            try await scene.ask("POST", "/v1/transfers", much, ["Idempotency-Key": "k"]).field("Idempotent-Replayed")
                == "true"
        )
        #expect(try await scene.ask("POST", "/v1/transfers", much).problem == "idempotency-key-missing")
        #expect(try scene.backend.main.ledgerFaults() == [])
    }

    @Test func `another person's account is reported as not found`() async throws {
        let scene = try Scene()
        let (_, other, _) = try await accounts(scene)
        let foreign = try await scene.ask("GET", "/v1/accounts/\(other)")
        let missing = try await scene.ask("GET", "/v1/accounts/acct_9999")
        #expect(foreign.status == 404 && missing.status == 404)
        #expect(foreign.problem == missing.problem)
        #expect(try await scene.ask("GET", "/v1/accounts", as: nil).status == 401)
        #expect(try await scene.ask("GET", "/v1/conversations/conv_4/messages", as: "person9").status == 404)
    }

    @Test func `random transfers conserve money and match their transactions`() async throws {
        let scene = try Scene()
        let seed: UInt64 = 0x5EED_0004
        var random = SeededGenerator(seed: seed)
        for step in 0..<150 {
            let person = random.uniform(in: 1..<13)
            let handle = person == 1 ? "ana" : "person\(person)"
            let account = try #require(try await scene.ask("GET", "/v1/accounts", as: handle).json["items"]?[0])
            let target = "acct_\(random.uniform(in: 4..<16))"
            let units = Int64(random.uniform(in: 1..<400_000))
            let reply = try await scene.ask(
                "POST",
                "/v1/transfers",
                as: handle,
                body(account, target, units),
                ["Idempotency-Key": "s\(step)"]
            )
            #expect([201, 409, 422].contains(reply.status), "seed \(seed), step \(step): \(reply.text)")
        }
        #expect(try scene.backend.main.ledgerFaults() == [])
    }

    @Test(arguments: [(Dialect.Idempotency.ietf, 422), (.stripeV1, 400), (.stripeV2, 422), (.blocking, 422)])
    func `a key that was used with another body is rejected as the dialect says`(
        _ dialect: Dialect.Idempotency,
        _ status: Int
    ) async throws {
        let stage = try Stage()
        stage.world.dialect.idempotency = dialect
        let key = ["Idempotency-Key": "k"]
        #expect(try await stage.ask("POST", "/v1/posts", #"{"text":"one"}"#, fields: key).status == 201)
        #expect(try await stage.ask("POST", "/v1/posts", #"{"text":"two"}"#, fields: key).status == status)
    }
}
