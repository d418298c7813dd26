import LarderCoding
import LarderServer
import LarderTime
import TestSupport
import Testing

@Suite("Control plane access", .oneMinute)
struct ControlSafetyTests {
    private func raw(_ stage: Stage, _ head: String) async throws -> RawReply {
        let client = try stage.connect()
        try client.send("GET /_larder HTTP/1.1\r\n\(head)\r\n\r\n")
        return try await client.reply()
    }

    @Test func `a rebound host name and a foreign page are rejected, the server's own page is not`() async throws {
        let stage = try Stage()
        let port = stage.backend.port
        #expect(try await raw(stage, "Host: 127.0.0.1:\(port)").status == 200)
        #expect(try await raw(stage, "Host: localhost:\(port)").status == 200)
        #expect(try await raw(stage, "Host: [::1]:\(port)").status == 200)
        #expect(try await raw(stage, "Host: 127.0.0.1:\(port)\r\nOrigin: http://127.0.0.1:\(port)").status == 200)
        for head in [
            "Host: evil.example", "Host: 127.0.0.1.evil.example:\(port)", "Host: localhost.evil.example",
            "Host: 127.0.0.1:\(port)\r\nOrigin: http://evil.example",
            "Host: 127.0.0.1:\(port)\r\nOrigin: null",
            "Host: 127.0.0.1:\(port)\r\nOrigin: http://127.0.0.1:1",
            "Host: 127.0.0.1:\(port)\r\nSec-Fetch-Site: cross-site",
        ] {
            let reply = try await raw(stage, head)
            #expect(reply.status == 403 && reply.problem == "control-rejected", "\(head)")
        }
    }

    @Test func `a configured token is required, and a disabled control plane is not found`() async throws {
        let guarded = try Stage { $0.controlToken = "sesame" }
        #expect(try await raw(guarded, "Host: 127.0.0.1").status == 401)
        #expect(try await raw(guarded, "Host: 127.0.0.1\r\nAuthorization: Bearer sesam").status == 401)
        #expect(try await raw(guarded, "Host: elsewhere\r\nAuthorization: Bearer sesame").status == 200)
        await guarded.backend.stop()
        let without = try Stage { $0.hasControl = false }
        #expect(try await raw(without, "Host: 127.0.0.1").status == 404)
    }

    @Test func `an address with a sign, a leading zero or an octet above 255 is not loopback`() async throws {
        let stage = try Stage()
        for host in ["127.0.0.+1", "127.+0.0.1", "127.0.0.01", "127.0.0.256", "127.0.0.", "127.0.0.1.", "127.1"] {
            let reply = try await raw(stage, "Host: \(host)")
            #expect(reply.status == 403 && reply.problem == "control-rejected", "\(host)")
        }
        for host in ["127.0.0.1", "127.255.0.9", "LOCALHOST", "127.0.0.1:80"] {
            #expect(try await raw(stage, "Host: \(host)").status == 200, "\(host)")
        }
    }

    @Test func `the host of an absolute target overrides the Host field`() async throws {
        let stage = try Stage()
        func ask(_ target: String, host: String) async throws -> RawReply {
            let client = try stage.connect()
            try client.send("GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            return try await client.reply()
        }
        for target in [
            "http://evil.example/_larder", "HTTP://evil.example:80/_larder/", "http://evil.example/w/main/_larder",
            "https://evil.example/_larder",
        ] {
            #expect(try await ask(target, host: "127.0.0.1").problem == "control-rejected", "\(target)")
        }
        #expect(try await ask("http://127.0.0.1/_larder/worlds", host: "127.0.0.1").status == 200)
        #expect(try await ask("http://localhost:9/_larder/worlds", host: "proxy.example").status == 200)
        #expect(try await ask("https://localhost/_larder/worlds", host: "proxy.example").status == 200)
    }

    @Test func `a repeated Origin or Sec-Fetch-Site field does not admit a foreign page`() async throws {
        let stage = try Stage()
        let own = "127.0.0.1:\(stage.backend.port)"
        for head in [
            "Origin: http://\(own)\r\nOrigin: http://evil.example",
            "Origin: http://evil.example\r\nOrigin: http://\(own)",
            "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site",
        ] {
            let reply = try await raw(stage, "Host: \(own)\r\n\(head)")
            #expect(reply.status == 403 && reply.problem == "control-rejected", "\(head)")
        }
    }

    @Test(arguments: ["Bearer", "bearer", "BEARER"])
    func `the authentication scheme is case-insensitive`(scheme: String) async throws {
        let stage = try Stage { $0.controlToken = "sesame" }
        #expect(try await raw(stage, "Host: h\r\nAuthorization: \(scheme) sesame").status == 200)
        #expect(try await raw(stage, "Host: h\r\nAuthorization: \(scheme)  sesame").status == 200)
        #expect(try await raw(stage, "Host: h\r\nAuthorization: \(scheme)sesame").status == 401)
        #expect(try await raw(stage, "Host: h\r\nAuthorization: \(scheme) SESAME").status == 401)
        #expect(try await raw(stage, "Host: h\r\nAuthorization: Basic sesame").status == 401)
        for spaces in [" ", "  "] {
            let fields = ["Authorization": "\(scheme)\(spaces)dev-ana"]
            #expect(try await stage.ask("GET", "/v1/me", as: nil, fields: fields).status == 200)
        }
    }

    @Test func `random requests to the control plane are answered, and the server keeps running`() async throws {
        let stage = try Stage()
        var generator = SeededGenerator(seed: 20_261_121)
        let targets = [
            "worlds", "faults", "script", "gates", "verify", "actors", "drift", "dialect", "skew", "clock",
            "clock/advance", "snapshots", "profiles/train", "act", "oracles/converged", "held/1/answer",
        ]
        let seeds = [
            #"{"faults":[{"id":"x","match":{"path":"/v1/**","probability":0.5,"every":2},"action":{"type":"latency","firstByte":{"logNormal":{"median":0.1,"sigma":1}}}}]}"#,
            #"{"match":{"path":"/v1/feed","headers":{"A":"*"},"body":{"/a":"1"}},"action":{"type":"truncate","inside":"chunkHeader"},"stage":"body"}"#,
            #"{"steps":[{"atSeconds":1,"journey":"train","act":{"as":"ana","method":"POST","path":"/v1/posts","body":{"text":"x"}}}]}"#,
            #"{"expect":[{"match":{"status":"2xx"},"exactly":1,"withinSeconds":1}],"inOrder":true}"#,
            #"{"seconds":0.5,"toNextTimer":false,"mode":"frozen","factor":2,"time":"2026-01-01T00:00:00Z"}"#,
            #"{"as":"ana","held":{"post_1":1},"types":"post","name":"s","id":"w","seed":1,"from":"empty","fault":"expire"}"#,
        ]
        for round in 0..<600 {
            var body = Array(seeds[generator.uniform(in: 0..<seeds.count)].utf8)
            for _ in 0..<generator.uniform(in: 0..<4) {
                let position = generator.uniform(in: 0..<body.count)
                switch generator.uniform(in: 0..<4) {
                case 0: body[position] = UInt8(truncatingIfNeeded: generator.next())
                case 1: body.remove(at: position)
                case 2: body.insert(UInt8(ascii: "9"), at: position)
                default: body.swapAt(position, generator.uniform(in: 0..<body.count))
                }
                if body.isEmpty { body = [0x7B, 0x7D] }
            }
            let method = ["POST", "PUT"][generator.uniform(in: 0..<2)]
            let target = targets[generator.uniform(in: 0..<targets.count)]
            let client = try stage.connect()
            try client.send(
                Array(
                    "\(method) /_larder/\(target) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: \(body.count)\r\n\r\n"
                        .utf8
                ) + body
            )
            let reply = try await client.reply()
            #expect(
                (200..<500).contains(reply.status),
                "round \(round): \(target) \(String(decoding: body, as: UTF8.self))"
            )
        }
        stage.world.removeFaults()
        try stage.world.reset()
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
    }
}
