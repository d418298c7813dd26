import Foundation
import LarderCoding
import LarderTime
import TestSupport
import Testing

@testable import LarderServer

@Suite("The control plane's own description", .oneMinute)
struct ControlDescriptionTests {
    private func description(_ stage: Stage) async throws -> JSONValue {
        try await stage.ask("GET", "/_larder/openapi.json", as: nil).json
    }

    /// The paths with their methods in capitals.
    private func operations(_ document: JSONValue) -> [(path: String, methods: [String])] {
        (document["paths"]?.object?.members ?? []).map { member in
            (
                member.name,
                (member.value.object?.members ?? []).map(\.name).filter { $0 != "parameters" }.map { $0.uppercased() }
            )
        }
    }

    /// A path whose parameters have values.
    private func concrete(_ path: String) -> String {
        path.split(separator: "{", omittingEmptySubsequences: false).enumerated().map { index, part in
            index == 0 ? String(part) : "1" + part.drop { $0 != "}" }.dropFirst()
        }.joined()
    }

    @Test func `it has the methods that each path takes, and no others`() async throws {
        let stage = try Stage()
        let world = try stage.backend.makeWorld(id: "1")
        for (path, methods) in operations(try await description(stage)) where path != "/_larder/" {
            let target = concrete(path)
            // No path takes TRACE, so that the reply lists those that it takes.
            let rejected = try await stage.ask("TRACE", target, as: nil)
            let allowed = (rejected.field("Allow") ?? "").split(separator: ",").map { $0.filter { $0 != " " } }
            #expect(rejected.status == 405, "\(path): \(rejected.status)")
            // The world `main` cannot be removed.
            let taken = Set(allowed).subtracting(path == "/_larder" ? ["HEAD", "DELETE"] : ["HEAD"])
            #expect(taken == Set(methods), "\(path) takes \(allowed)")
        }
        #expect(throws: Never.self) { try world.reset() }
    }

    @Test func `it has every function that the control plane lists, also below a world`() async throws {
        let stage = try Stage()
        _ = try stage.backend.makeWorld(id: "blue")
        let paths = operations(try await description(stage)).map(\.path)
        for part in ControlEndpoints.parts {
            #expect(paths.contains { $0 == "/_larder/\(part)" || $0.hasPrefix("/_larder/\(part)/") }, "\(part)")
        }
        let known = Set(ControlEndpoints.parts + ["openapi.json"])
        for path in paths {
            let part = path.split(separator: "/").dropFirst().first.map { String($0) }
            #expect(part.map { known.contains($0) } ?? true, "\(path)")
        }
        for prefix in ["/w/blue/_larder", "/_larder/worlds/blue"] {
            #expect(try await stage.ask("GET", prefix + "/faults", as: nil).status == 200)
        }
    }

    @Test func `every reference leads somewhere, and every operation documents its problems`() async throws {
        let stage = try Stage()
        let document = try await description(stage)
        func check(_ value: JSONValue) {
            if let target = value["$ref"]?.string {
                #expect(document.value(at: String(target.dropFirst())) != nil, "\(target)")
            }
            for member in value.object?.members ?? [] { check(member.value) }
            for item in value.array ?? [] { check(item) }
        }
        check(document)
        var names: Set<String> = []
        for member in document["paths"]?.object?.members ?? [] {
            for operation in member.value.object?.members ?? [] where operation.name != "parameters" {
                #expect(
                    operation.value.value(at: "/responses/default/$ref") == .string("#/components/responses/Problem")
                )
                let name = operation.value["operationId"]?.string ?? ""
                #expect(!name.isEmpty && !names.contains(name))
                names.insert(name)
            }
        }
        let problem = try await stage.ask("POST", "/_larder/clock/advance", "{}", as: nil)
        #expect(problem.status == 422 && problem.field("Content-Type") == "application/problem+json")
        let members = Set((try problem.json.object?.members ?? []).map(\.name))
        let known = Set(
            (document.value(at: "/components/schemas/Problem/properties")?.object?.members ?? []).map(\.name)
        )
        #expect(members.isSubset(of: known), "\(members)")
    }

    @Test func `it describes each action of a fault with all of its members`() async throws {
        let stage = try Stage()
        let schemas = try await description(stage).value(at: "/components/schemas")
        var described: [String: Set<String>] = [:]
        var examples: [JSONValue] = []
        for option in schemas?["FaultAction"]?["oneOf"]?.array ?? [] {
            let name = option["$ref"]?.string?.split(separator: "/").last.map { String($0) } ?? ""
            let schema = try #require(schemas?[name], "\(name)")
            let members = Set((schema["properties"]?.object?.members ?? []).map(\.name))
            for type in schema.value(at: "/properties/type/enum")?.array ?? [] {
                let type = try #require(type.string)
                described[type] = members
                #expect(
                    schemas?["FaultAction"]?["discriminator"]?["mapping"]?[type]
                        == .string("#/components/schemas/\(name)")
                )
            }
            let shown = schema["examples"]?.array ?? []
            let exemplified = Set(shown.flatMap { $0.object?.members ?? [] }.map(\.name))
            #expect(exemplified == members, "\(name) has examples of \(exemplified), not of all its members")
            examples += shown
        }
        #expect(described.keys.sorted() == FaultKind.all.map(\.name).sorted())
        for example in examples {
            var writer = JSONWriter()
            writer.value(.object(JSONObject([.init(name: "action", value: example)])))
            let body = String(decoding: writer.bytes, as: UTF8.self)
            let reply = try await stage.ask("POST", "/_larder/faults", body, as: nil)
            #expect(reply.status == 201, "\(body): \(reply.text)")
            let set = try await stage.ask("GET", "/_larder/faults", as: nil).json["items"]?.array?.last?["action"]
            let members = Set((set?.object?.members ?? []).map(\.name))
            #expect(members.isSubset(of: described[example["type"]?.string ?? ""] ?? []), "\(body): \(members)")
            _ = try await stage.ask("DELETE", "/_larder/faults", as: nil)
        }
    }

    @Test func `the table in FAULTS.md has each action with its members and its stages`() throws {
        let path = #filePath.replacing(
            "Tests/LarderServerTests/ControlDescriptionTests.swift",
            with: "Server/FAULTS.md"
        )
        let rows = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
            .drop { $0 != "### Actions" }.filter { $0.hasPrefix("| `") }
            .map { $0.split(separator: "|", omittingEmptySubsequences: false).dropFirst().map { " \($0) " } }
        for kind in FaultKind.all {
            let row = try #require(rows.first { $0[0].contains("`\(kind.name)`") }, "\(kind.name)")
            for member in kind.members {
                #expect(row[1].contains("`\(member.name)`") || row[1].contains("`\(member.name):"), "\(member.name)")
            }
            let stages = kind.stages.map(\.rawValue)
            if stages.count == 1 {
                #expect(row[2].contains(" \(stages[0]) "), "\(kind.name)")
            } else {
                #expect(row[2].contains("**\(stages[0])**"), "\(kind.name)")
                #expect(
                    row[2].contains(" all,") || stages.dropFirst().allSatisfy { row[2].contains($0) },
                    "\(kind.name)"
                )
            }
        }
    }
}

@Suite("Worlds that nobody uses, and users that do not exist", .oneMinute)
struct UnusedWorldTests {
    @Test func `a world ends when no request has addressed it for its limit`() async throws {
        let clock = ManualClock()
        let stage = try Stage {
            $0.use(clock)
            $0.worldsMaximum = 3
        }
        func make(_ body: String) async throws -> RawReply {
            try await stage.ask("POST", "/_larder/worlds", body, as: nil)
        }
        let made = try await make(#"{"id":"short","idleSeconds":60}"#)
        #expect(made.status == 201)
        #expect(try made.json["idleSeconds"] == .integer(60))
        #expect(try await make(#"{"id":"long"}"#).status == 201)
        clock.advance(by: .seconds(59))
        #expect(try await stage.ask("GET", "/w/short/v1/feed", as: nil).status == 200)
        clock.advance(by: .seconds(59))
        #expect(try await stage.ask("GET", "/w/short/v1/feed", as: nil).status == 200)
        #expect(try await make(#"{"id":"third"}"#).status == 409)
        clock.advance(by: .seconds(60))
        // It makes room before anybody asks for it.
        #expect(try await make(#"{"id":"third"}"#).status == 201)
        #expect(try await stage.ask("GET", "/w/short/v1/feed", as: nil).status == 404)
        #expect(try await stage.ask("GET", "/w/long/v1/feed", as: nil).status == 200)
        #expect(try await make(#"{"id":"x","idleSeconds":0}"#).status == 422)
    }

    @Test func `a name can be used again after its world has ended`() async throws {
        let clock = ManualClock()
        let stage = try Stage {
            $0.use(clock)
            $0.worldIdleLimit = .seconds(10)
        }
        let first = try stage.backend.makeWorld(id: "blue")
        clock.advance(by: .seconds(11))
        let second = try stage.backend.makeWorld(id: "blue")
        #expect(first.world !== second.world)
        #expect(stage.backend.worlds.map(\.id) == ["blue", "main"])
        clock.advance(by: .seconds(11))
        #expect(stage.backend.worlds.map(\.id) == ["main"])
    }

    @Test func `a fault, a gate and an actor for nobody are reported`() async throws {
        let stage = try Stage()
        func add(_ path: String, _ user: String, _ more: String) async throws -> JSONValue {
            try await stage.ask("POST", "/_larder/" + path, "{\"match\":{\"user\":\"\(user)\"},\(more)}", as: nil).json
        }
        for (path, more) in [
            ("faults", #""action":{"type":"reset"}"#), ("gates", #""stage":"request""#), ("actors", #""acts":[]"#),
        ] {
            let warned = try await add(path, "nobody", more)
            let text = warned["warnings"]?.array?.first.map { $0["neverMatches"]?.string ?? $0.string ?? "" }
            #expect(text == "Nobody in the world has the handle 'nobody'.", "\(path)")
            #expect(try await add(path, "ana", more)["warnings"] == nil, "\(path)")
        }
    }
}
