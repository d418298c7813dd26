import Glibc
import LarderCoding
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Collections that are written into their files", .oneMinute)
struct WriteBackTests {
    private struct Site {
        let shop: CollectionShop
        let directory: ScratchDirectory

        init(_ files: [String: String], writesBack: Bool = false) throws {
            directory = try CollectionShop.directory(files)
            shop = try CollectionShop(at: directory) { $0.writesBack = writesBack }
        }

        func text(_ name: String) throws -> String {
            String(decoding: try SourceFile.bytes(directory.path + "/" + name), as: UTF8.self)
        }

        func mode(_ name: String) -> mode_t {
            var status = stat()
            return unsafe stat(directory.path + "/" + name, &status) == 0 ? status.st_mode & 0o777 : 0
        }
    }

    @Test func `a request writes the files that have changed, as a whole and with their modes`() async throws {
        let people = "[ {\"id\": 1,\n \"name\": \"Ana\"} ]"
        let site = try Site(["books.json": #"[{"id": 1, "title": "Emma"}]"#, "people.json": people, "me.json": "{}"])
        #expect(unsafe chmod(site.directory.path + "/books.json", 0o600) == 0)
        _ = try await site.shop.ask("POST", "/books", #"{"title": "Dune"}"#)
        _ = try await site.shop.ask("PATCH", "/me", #"{"name": "Bo"}"#)
        #expect(try site.text("books.json") == #"[{"id": 1, "title": "Emma"}]"#)
        let reply = try await site.shop.ask("POST", "/_larder/files")
        #expect(try reply.json["written"]?.array?.count == 2)
        #expect(
            try site.text("books.json") == """
                [
                  {"id":1,"title":"Emma"},
                  {"id":2,"title":"Dune"}
                ]

                """
        )
        #expect(try site.text("me.json") == "{\"name\":\"Bo\"}\n" && site.text("people.json") == people)
        #expect(site.mode("books.json") == 0o600)
        #expect(try await site.shop.ask("POST", "/_larder/files").json["written"]?.array?.isEmpty ?? false)
        // What the server has written is no edit that starts the world again.
        #expect(try site.shop.backend.plane.collectionFiles?.load().isNew == false)
        #expect(try await site.shop.ask("GET", "/books/2").status == 200)
    }

    @Test func `a file that was edited meanwhile is not overwritten`() async throws {
        let site = try Site(["db.json": #"{"books": [{"id": 1}], "me": {}}"#])
        _ = try await site.shop.ask("POST", "/books", "{}")
        let edited = #"{"books": [{"id": 7}], "me": {}}"#
        RouteSite.write("db.json", edited, in: site.directory.path)
        let refused = try await site.shop.ask("POST", "/_larder/files")
        #expect(refused.status == 503 && refused.text.contains("was edited meanwhile"))
        #expect(try site.text("db.json") == edited)
        _ = try site.shop.backend.plane.collectionFiles?.load()
        _ = try await site.shop.ask("POST", "/books", "{}")
        #expect(try await site.shop.ask("POST", "/_larder/files").status == 200)
        #expect(try site.text("db.json") == "{\n\"books\": [\n  {\"id\":7},\n  {\"id\":8}\n],\n\"me\": {}\n}\n")
    }

    @Test func `an edit that cannot be loaded is not overwritten either`() async throws {
        let directory = try CollectionShop.directory(["books.json": #"[{"id": 1}]"#])
        let database = try ScratchDirectory()
        let shop = try CollectionShop(at: directory) { $0.databasePath = database.path + "/d.sqlite" }
        _ = try await shop.ask("POST", "/books", "{}")
        RouteSite.write("books.json", #"[{"id": 7}]"#, in: directory.path)
        for _ in 0..<2 { #expect(throws: FileError.self) { try shop.backend.plane.collectionFiles?.load() } }
        #expect(try await shop.ask("POST", "/_larder/files").status == 503)
    }

    @Test func `each change is written when that is wanted, the last one at the latest when the server stops`()
        async throws
    {
        let site = try Site(["books.json": "[]"], writesBack: true)
        _ = try await site.shop.ask("POST", "/books", "{}")
        try await reached { try site.text("books.json") != "[]" }
        _ = try await site.shop.ask("POST", "/books", "{}")
        await site.shop.backend.stop()
        #expect(try site.text("books.json") == "[\n  {\"id\":1},\n  {\"id\":2}\n]\n")
    }

    @Test func `a change is written when the file that was in its way can be read again`() async throws {
        let site = try Site(["books.json": "[]", "people.json": "[]"], writesBack: true)
        RouteSite.write("people.json", "[{", in: site.directory.path)
        _ = try await site.shop.ask("POST", "/books", "{}")
        RouteSite.write("people.json", "[]", in: site.directory.path)
        _ = try site.shop.backend.plane.collectionFiles?.load()
        #expect(try site.text("books.json") == "[\n  {\"id\":1}\n]\n")
    }

    @Test func `without files there is nothing to write`() async throws {
        let site = try RouteSite(routes: #"{"path": "/a"}"#)
        #expect(try await site.ask("POST", "/_larder/files", "{}").status == 400)
    }
}
