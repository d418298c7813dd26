import LarderArguments
import TestSupport
import Testing

@testable import LarderCommand

@Suite("Command: arguments", .oneMinute)
struct ArgumentsTests {
    private func message(_ line: String) -> String? {
        do {
            _ = try Arguments(line.split(separator: " ").map { String($0) })
            return nil
        } catch { return error.message }
    }

    @Test func `flags are accepted before and after the command, and with an equals sign`() throws {
        let arguments = try Arguments(["--server=http://host:1/", "feed", "--limit", "5", "--user", "ben", "--json"])
        #expect(arguments.server == "http://host:1" && arguments.user == "ben")
        #expect(try Arguments(["feed", "-s", "localhost:9000"]).server == "http://localhost:9000")
        #expect(arguments.limit == 5 && arguments.isJSON && arguments.name == "feed" && arguments.words.isEmpty)
    }

    @Test func `environment variables are the defaults of flags`() throws {
        let environment = ["LARDER_SERVER": "http://host:2", "LARDER_USER": "ben", "LARDER_PASSWORD": "secret"]
        let arguments = try Arguments(["feed", "--user", "chidi"], environment: environment)
        #expect(arguments.server == "http://host:2" && arguments.user == "chidi" && arguments.password == "secret")
    }

    @Test func `arguments after -- may begin with a dash`() throws {
        let arguments = try Arguments(["transfer", "--", "a", "b", "-5"])
        #expect(arguments.name == "transfer" && arguments.words == ["a", "b", "-5"])
    }

    @Test(arguments: [
        ("fed", "unknown command 'fed'"), ("feed extra", "not a post ID"),
        ("feed post_5 --live", "does not accept --live"),
        ("accounts --limit 3", "does not accept --limit"), ("like", "usage: larder like POST"),
        ("feed --limit x", "integer"), ("feed --limit 0", "from 1 to 500"), ("feed --nonsense", "unknown option"),
        ("like post_5 --live", "does not accept --live"), ("feed --live --offline", "remove --offline"),
        ("chat --send hi", "--send requires a conversation"), ("cache", "usage: larder cache"),
        ("cache trim", "usage: larder cache clear"), ("feed --json=1", "takes no value"),
        ("outbox drop x", "not an operation ID"),
        ("outbox explode", "usage: larder outbox"), ("profile --edit name=x", "displayName, bio, location"),
        ("profile ben --edit bio=x", "only your own"), ("feed --policy maybe", "--policy requires one of"),
        ("feed --server ftp://x", "--server requires a URL or host"), ("feed --user", "requires a value"),
        ("tasks done", "usage: larder tasks"), ("tasks done x7", "not a task ID"),
        ("tasks paint 7", "usage: larder tasks"),
        ("tasks --status later", "--status requires"), ("tasks --sort name", "--sort requires"),
        ("tasks add x --due soon", "YYYY-MM-DD"), ("tasks due 7 2026-7-1", "YYYY-MM-DD"),
        ("tasks done 7 --status open", "does not accept --status"),
        ("feed --assignee me", "does not accept --assignee"),
    ])
    func `an invalid command line gives a one-line error`(line: String, part: String) {
        let text = message(line)
        #expect(text?.contains(part) == true, "\(text ?? "accepted")")
        #expect(text?.contains("\n") != true)
    }

    @Test func `the text of an edit may contain an equals sign or be empty`() throws {
        let edits = try Arguments(["profile", "--edit", "bio=1=2", "--edit", "location="]).edits
        #expect(edits == [.init(field: .bio, value: "1=2"), .init(field: .location, value: "")])
    }

    @Test func `help is one text, however it is asked for, and is shown without a command`() throws {
        for words in [[], ["help"], ["--help"], ["help", "help"]] {
            let arguments = try Arguments(words)
            #expect(arguments.name == "help" && arguments.words.isEmpty)
        }
        #expect(try Help.text(of: nil).split(separator: "\n").allSatisfy { $0.count <= 110 })
        for entry in Arguments.commands.all {
            for words in [["help", entry.name], [entry.name, "--help"], ["-h", entry.name]] {
                let arguments = try Arguments(words)
                #expect(arguments.name == "help" && arguments.words == [entry.name])
            }
            let text = try Help.text(of: entry.name)
            #expect(text.hasPrefix("larder \(entry.usage)\n") && text.contains("--server"), "\(text)")
            #expect(entry.options.allSatisfy { text.contains($0) || $0 == "--child" }, "\(text)")
        }
        #expect(message("help fed") == "unknown command 'fed'; did you mean 'feed'?")
        #expect(message("outbox sned")?.hasPrefix("did you mean 'send'? usage: larder outbox") == true)
        #expect(message("feed --limit 3 --limit 4") == "--limit was given twice; give it once")
        #expect(message("--version extra") == "--version takes no 'extra'")
        #expect(message("chat conv_1 --photo a.png") == "--photo requires a message: --send TEXT")
        #expect(message("feed --limt 3") == "unknown option '--limt'; did you mean '--limit'?")
    }
}
