import Glibc
import LarderBackend
import LarderCoding
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderServer

@Suite("Files that change while the server runs", .oneMinute)
struct ReloadTests {
    /// What the server has announced, for tests that wait for it.
    private final class Announcements: Sendable {
        private struct State {
            var all: [String] = []
            var waiting: [(text: String, found: Pending<String>)] = []
        }

        private let state = Mutex(State())

        func add(_ announcement: String) {
            let found = state.withLock { state in
                state.all.append(announcement)
                defer { state.waiting.removeAll { announcement.contains($0.text) } }
                return state.waiting.filter { announcement.contains($0.text) }.map(\.found)
            }
            for wait in found { wait.finish(announcement) }
        }

        func forget() { state.withLock { $0.all = [] } }

        /// Waits for an announcement with that text, the first one. Empty if the suite's time limit ends the wait.
        func next(containing text: String) async -> String {
            let found = Pending<String>()
            state.withLock { state in
                if let known = state.all.first(where: { $0.contains(text) }) {
                    found.finish(known)
                } else {
                    state.waiting.append((text, found))
                }
            }
            return await found.value(ifCancelled: "")
        }
    }

    private func makeSite(_ files: [String: String], _ source: WorldSource = .empty) throws -> (
        RouteSite, Announcements
    ) {
        let announcements = Announcements()
        let site = try RouteSite(files, source) { configuration in
            configuration.watchesFiles = true
            configuration.announce = { announcements.add($0) }
        }
        return (site, announcements)
    }

    @Test func `routes are served as they are edited, and a wrong file leaves the last good ones`() async throws {
        let (site, announcements) = try makeSite(["a.json": #"{"routes": [{"path": "/a", "text": "one"}]}"#])
        let first = try await site.ask("GET", "/a")
        let tag = try #require(first.field("ETag"))
        #expect(first.text == "one")
        site.write("a.json", #"{"routes": [{"path": "/a", "text": "two"}, {"path": "/b", "text": "b"}]}"#)
        _ = await announcements.next(containing: "loaded 2 routes")
        let second = try await site.ask("GET", "/a", nil, ["If-None-Match": tag])
        #expect(second.status == 200 && second.text == "two")
        site.write("a.json", "{\"routes\": [\n{\"paht\": \"/a\"}]}")
        let sentence = await announcements.next(containing: "last good version")
        #expect(sentence.contains("a.json:2: ") && sentence.contains("did you mean `path`?"))
        #expect(try await site.text("GET", "/b") == "b")
        let report = try await site.ask("GET", "/_larder/files").json
        #expect(report["files"]?[0]?["kind"]?.string == "routes")
        let lines = report["files"]?[0]?["error"]?.string?.split(separator: "\n") ?? []
        #expect(lines.count == 2 && lines.allSatisfy { $0.contains("a.json:2: ") }, "\(lines)")
        #expect(report["routes"]?.array?.count == 2)
        site.write("b.json", #"{"routes": []}"#)
        site.write("a.json", #"{"routes": [{"path": "/c", "file": "page.txt"}]}"#)
        site.write("page.txt", "x")
        _ = await announcements.next(containing: "loaded 1 route")
        #expect(try await site.ask("GET", "/_larder/files").json["files"]?[0]?["error"] == nil)
    }

    @Test func `a directory that two sources name in different ways is watched for both`() async throws {
        let folder = try ScratchDirectory()
        let (api, data) = (folder.path + "/api", folder.path + "/data")
        for path in [api, data, folder.path + "/bodies"] { #expect(unsafe mkdir(path, 0o755) == 0) }
        func routes(_ file: String) -> String { #"{"routes": [{"path": "/raw", "file": "../\#(file)"}]}"# }
        RouteSite.write("r.json", routes("data/books.json"), in: api)
        RouteSite.write("books.json", "[]", in: data)
        let announcements = Announcements()
        let site = try RouteSite([:], .collections(directory: data)) { configuration in
            configuration.routes = api
            configuration.watchesFiles = true
            configuration.announce = { announcements.add($0) }
        }
        RouteSite.write("books.json", #"[{"id": 1}]"#, in: data)
        _ = await announcements.next(containing: "/books (1)")
        _ = await announcements.next(containing: "loaded 1 route")
        #expect(try await site.text("GET", "/raw").contains(#""id": 1"#))
        announcements.forget()
        RouteSite.write("r.json", routes("bodies/late.txt"), in: api)
        _ = await announcements.next(containing: "last good version")
        RouteSite.write("books.json", #"[{"id": 1}, {"id": 2}]"#, in: data)
        _ = await announcements.next(containing: "/books (2)")
        // A file that was missing appears.
        RouteSite.write("late.txt", "x", in: folder.path + "/bodies")
        _ = await announcements.next(containing: "loaded 1 route")
        #expect(try await site.text("GET", "/raw") == "x")
    }

    @Test func `a directory that was removed and made again is watched`() async throws {
        let folder = try ScratchDirectory()
        let api = folder.path + "/api"
        func make(_ text: String) {
            #expect(unsafe mkdir(api, 0o755) == 0)
            RouteSite.write("a.json", #"{"routes": [{"path": "/a", "text": "\#(text)"}]}"#, in: api)
        }
        make("one")
        let announcements = Announcements()
        let site = try RouteSite([:]) { configuration in
            configuration.routes = api
            configuration.watchesFiles = true
            configuration.announce = { announcements.add($0) }
        }
        #expect(unsafe unlink(api + "/a.json") == 0 && rmdir(api) == 0)
        _ = await announcements.next(containing: "No such file or directory")
        #expect(try await site.text("GET", "/a") == "one")
        make("two")
        _ = await announcements.next(containing: "loaded 1 route")
        #expect(try await site.text("GET", "/a") == "two")
    }

    @Test func `the demo's cached replies end when a route takes their path`() async throws {
        let (site, announcements) = try makeSite(
            ["a.json": #"{"routes": []}"#],
            .generated(WorldSize(), picturesFrom: nil)
        )
        for _ in 0..<3 { #expect(try await site.ask("GET", "/v1/feed?limit=1").status == 200) }
        site.write("a.json", #"{"routes": [{"path": "/v1/feed", "text": "mine"}]}"#)
        _ = await announcements.next(containing: "loaded 1 route")
        #expect(try await site.text("GET", "/v1/feed?limit=1") == "mine")
    }

    @Test func `data is loaded again, for main and for later worlds`() async throws {
        let data = try CollectionShop.directory(["todos.json": #"[{"id": 1}]"#])
        let (site, announcements) = try makeSite(["a.json": #"{"routes": []}"#], .collections(directory: data.path))
        let blue = try site.backend.makeWorld(id: "blue")
        #expect(try await site.ask("POST", "/todos", #"{"id": 5}"#).status == 201)
        RouteSite.write("todos.json", #"[{"id": 1}, {"id": 2}]"#, in: data.path)
        _ = await announcements.next(containing: "/todos (2)")
        #expect(try await site.text("GET", "/todos") == #"[{"id":1},{"id":2}]"#)
        #expect(try await site.text("GET", "/w/blue/todos") == #"[{"id":1}]"#)
        _ = try site.backend.makeWorld(id: "green")
        #expect(try await site.text("GET", "/w/green/todos") == #"[{"id":1},{"id":2}]"#)
        #expect(try await site.ask("DELETE", "/todos/1").status == 204)
        try site.backend.main.reset()
        #expect(try await site.text("GET", "/todos") == #"[{"id":1},{"id":2}]"#)
        RouteSite.write("todos.json", "[", in: data.path)
        #expect(await announcements.next(containing: "last good version").contains("todos.json"))
        #expect(try await site.text("GET", "/todos") == #"[{"id":1},{"id":2}]"#)
        announcements.forget()
        RouteSite.write("todos.json", #"[{"id": 1}, {"id": 2}]"#, in: data.path)
        #expect(await announcements.next(containing: "loaded").contains("/todos (2)"))
        withExtendedLifetime(blue) {}
    }

    @Test func `a script of faults starts anew`() async throws {
        func script(_ status: Int) -> String {
            #"{"steps": [{"faults": [{"id": "f", "match": {"path": "/a"}, "action": {"type": "respond", "status": \#(status)}}]}]}"#
        }
        let scripts = try CollectionShop.directory(["faults.json": script(503)])
        let routes = ["a.json": #"{"routes": [{"path": "/a", "text": "one"}]}"#]
        let (site, announcements) = try makeSite(routes)
        let path = scripts.path + "/faults.json"
        _ = try site.backend.run(scriptAt: path) { try SourceFile.bytes(path) }
        #expect(try await site.text("GET", "/a") == "503")
        RouteSite.write("faults.json", script(500), in: scripts.path)
        _ = await announcements.next(containing: "loaded 1 step")
        #expect(try await site.text("GET", "/a") == "500")
        RouteSite.write("faults.json", #"{"steps": []}"#, in: scripts.path)
        _ = await announcements.next(containing: "loaded 0 steps")
        #expect(try await site.text("GET", "/a") == "one")
    }

    @Test func `a wrong script of faults leaves the last good one`() async throws {
        func script(_ rest: String) -> String {
            #"{"steps": [{"faults": [{"id": "f", "match": {"path": "/a"}, "action": {"type": "respond", "status": 503}}]}\#(rest)]}"#
        }
        let scripts = try CollectionShop.directory(["faults.json": script("")])
        let (site, announcements) = try makeSite(["a.json": #"{"routes": [{"path": "/a", "text": "one"}]}"#])
        let path = scripts.path + "/faults.json"
        _ = try site.backend.run(scriptAt: path) { try SourceFile.bytes(path) }
        #expect(try await site.text("GET", "/a") == "503")
        RouteSite.write("faults.json", script(#", {"atSeconds": 9, "remove": ["bsuy"]}"#), in: scripts.path)
        let announced = await announcements.next(containing: "last good version")
        #expect(announced.contains("faults.json:1") && announced.contains("is no fault"), "\(announced)")
        #expect(try await site.text("GET", "/a") == "503")
    }

    @Test func `a reload ends the steps of the file, and not those of another script`() async throws {
        func step(_ id: String, _ path: String) -> String {
            #"{"steps": [{"atSeconds": 30, "faults": [{"id": "\#(id)", "match": {"path": "\#(path)"}, "action": {"type": "respond", "status": 503}}]}]}"#
        }
        let scripts = try CollectionShop.directory(["faults.json": step("old", "/a")])
        let (site, announcements) = try makeSite(
            ["a.json": #"{"routes": [{"path": "/a", "text": "one"}, {"path": "/b", "text": "two"}]}"#]
        )
        site.backend.main.clock.freeze()
        let path = scripts.path + "/faults.json"
        _ = try site.backend.run(scriptAt: path) { try SourceFile.bytes(path) }
        try site.backend.main.run(FaultScript(json: Array(step("posted", "/b").utf8)))
        RouteSite.write("faults.json", #"{"steps": []}"#, in: scripts.path)
        _ = await announcements.next(containing: "loaded 0 steps")
        site.backend.main.clock.advance(by: .seconds(30))
        #expect(site.backend.main.faults.map(\.fault.id) == ["posted"])
    }

    @Test func `a token from before a reload of the data leads to a resync, also after a reset`() async throws {
        let data = try CollectionShop.directory(["todos.json": #"[{"id": 1}, {"id": 2}, {"id": 3}]"#])
        let (site, announcements) = try makeSite(["a.json": #"{"routes": []}"#], .collections(directory: data.path))
        func status(_ token: String) async throws -> Int {
            try await site.ask("GET", "/changes?since=\(token)").status
        }
        func now() async throws -> String {
            try #require(try await site.ask("GET", "/changes?since=now").json["nextToken"]?.string)
        }
        let early = try await now()
        let items = (1...5).map { #"{"id": \#($0), "title": "new"}"# }.joined(separator: ",")
        RouteSite.write("todos.json", "[\(items)]", in: data.path)
        _ = await announcements.next(containing: "/todos (5)")
        #expect(try await status(early) == 410)
        let late = try await now()
        try site.backend.main.reset()
        for token in [early, late] { #expect(try await status(token) == 410) }
    }
}
