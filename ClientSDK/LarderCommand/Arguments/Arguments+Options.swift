import Larder
import LarderArguments

extension Arguments {
    /// The title of the section of options that every command accepts.
    static let globalOptions = "OPTIONS OF ALL COMMANDS"

    /// The options. They are parsed and explained from this table.
    static var options: CommandOptions<Arguments> {
        CommandOptions([
            .init(
                globalOptions,
                [
                    .init("--server", short: "-s", "URL", "larder-server (http://127.0.0.1:8080, or $LARDER_SERVER)") {
                        $0.server = $1
                    },
                    .init("--user", short: "-u", "NAME", "account (last login, else ana, or $LARDER_USER)", \.user),
                    .init("--password", "WORD", "for the first login (larder, or $LARDER_PASSWORD)", \.password),
                    .init("--directory", "DIR", "the stores (~/.local/state/larder)", \.directory),
                    .init("--offline", "send no requests: show stored data, queue changes") { $0.isOffline = true },
                    .init("--json", short: "-j", "print JSON") { $0.isJSON = true },
                    .init("--timeout", "SECONDS", 1...3_600, "timeout of a request (10)") { $0.timeout = $1 },
                    .init("--wait", "SECONDS", 0...3_600, "wait for unsent changes (3)") { $0.drainTimeout = $1 },
                    .init("--trace", "print the events of the SDK on standard error, without\nprivate texts") {
                        $0.isTracing = true
                    },
                    .init("--explain", "say why each request was sent, and what the server's journal\nmakes of it") {
                        $0.isExplaining = true
                    },
                    .init("--inspect", "show this client in the server's dashboard while it runs") {
                        $0.isInspected = true
                    },
                    .init("--colour", "WHEN", "auto, always, never; NO_COLOR is respected") {
                        (arguments, text) throws(UsageError) in
                        guard let color = Color(rawValue: text) else {
                            throw UsageError(message: "--colour requires auto, always or never, not '\(text)'")
                        }
                        arguments.color = color
                    },
                    .init("--help", short: "-h", "this text, or that of a command") { $0.wantsHelp = true },
                    .init("--version", "the version") { $0.wantsVersion = true },
                ]
            ),
            .init(
                "OPTIONS OF READING COMMANDS",
                [
                    .init("--limit", short: "-n", "N", 1...500, "maximum number of items, up to 500") { $0.limit = $1 },
                    .init("--live", "follow changes until Ctrl-C, or for --seconds") { $0.isLive = true },
                    .init("--seconds", "N", 1...86_400, "end --live after so many seconds") { $0.seconds = $1 },
                    .init("--refresh", "always ask the server") { $0.isRefresh = true },
                    .init("--policy", "NAME", policyHelp) {
                        (arguments, text) throws(UsageError) in
                        guard let value = policies[text] else {
                            let names = policyNames.joined(separator: ", ")
                            throw UsageError(message: "--policy requires one of \(names), not '\(text)'")
                        }
                        arguments.policy = (text, value)
                    },
                ]
            ),
            .init(
                "OPTIONS OF SINGLE COMMANDS",
                [
                    .init("--edit", "FIELD=TEXT", "profile: displayName, bio or location", repeats: true) {
                        (arguments, text) throws(UsageError) in arguments.edits.append(try edit(text))
                    },
                    .init("--note", "TEXT", "transfer: the note of the transfer", \.note),
                    .init("--send", "TEXT", "chat: send a message", \.send),
                    .init("--photo", "FILE", "chat: send a PNG or JPEG with it", \.photo),
                    .init("--status", "S", "tasks: open, started, done or all", \.tasks.status),
                    .init("--assignee", "WHO", "tasks: a handle, me or nobody", \.tasks.assignee),
                    .init("--due", "DATE", "tasks: YYYY-MM-DD, or none", \.tasks.due),
                    .init("--sort", "ORDER", "tasks: due or newest", \.tasks.sort),
                    .init("--width", "N", 2...4_096, "images: the width in pixels") { $0.width = $1 },
                    .init("--recorder", "FILE", "doctor: the flight recorder of an app", \.recorder),
                    .init("--force", "logout: also with unsent changes") { $0.isForced = true },
                    .init("--reads", "KEYS", "tour eviction: read these, such as \"a b a c\"", \.reads),
                    // The process of the tour that is killed. The help leaves it out.
                    .init("--child", "DIR", "", \.child),
                ]
            ),
        ])
    }

    /// The commands, each with the options that it takes besides those of all.
    static let commands: CommandTable = {
        let reading: Set<String> = ["--refresh", "--policy"]
        let live: Set<String> = ["--live", "--seconds", "--limit"]
        return CommandTable(
            "larder",
            [
                .init(
                    "READ",
                    [
                        CommandEntry(
                            "feed [POST | [--live] [--limit N]]",
                            "the newest posts, or one with its likes, which are fresh for 10 s and its text for 60 s",
                            options: reading.union(live)
                        ),
                        CommandEntry(
                            "search [TEXT] [--limit N]",
                            "people and posts with all words of a text, or of what you type, or of each line of a pipe",
                            options: reading.union(["--limit"])
                        ),
                        CommandEntry(
                            "profile [ID|HANDLE | --edit FIELD=TEXT …]",
                            "a profile; without an argument, your own; an edit requires the server",
                            options: reading.union(["--edit"])
                        ),
                        CommandEntry(
                            "accounts [ACCOUNT [--limit N]]",
                            "balances with their age, or one that was confirmed within 15 s, with its transactions",
                            options: reading.union(["--limit"])
                        ),
                        CommandEntry(
                            "images [--limit N] [--width N]",
                            "fetch the images of the feed and show which tier served them",
                            options: ["--limit", "--width"]
                        ),
                    ]
                ),
                .init(
                    "READ AND WRITE",
                    [
                        CommandEntry(
                            "chat [CONVERSATION [--send TEXT [--photo FILE]]] [--live]",
                            "conversations, or the messages of one; a message is queued, and sent in order and once",
                            options: reading.union(live).union(["--send", "--photo"])
                        ),
                        CommandEntry(
                            "tasks [list | add TITLE | start ID | done ID | reopen ID | assign ID WHO | due ID DATE | delete ID]",
                            "a change is shown in the lists at once, and queued until the server confirms it",
                            options: reading.union(["--limit", "--status", "--assignee", "--due", "--sort"])
                        ),
                    ]
                ),
                .init(
                    "WRITE",
                    [
                        CommandEntry("like POST", "shown at once; queued until the server confirms it"),
                        CommandEntry("unlike POST", "the same"),
                        CommandEntry(
                            "transfer FROM TO AMOUNT [--note TEXT]",
                            "accounts by ID or name; shown only after the server has confirmed it",
                            options: ["--note"]
                        ),
                    ]
                ),
                .init(
                    "MAINTAIN",
                    [
                        CommandEntry(
                            "sync [--live]",
                            "apply changes from the change feed",
                            options: ["--live", "--seconds"]
                        ),
                        CommandEntry(
                            "outbox [list | send | (retry | keep | merge | theirs | drop) ID]",
                            "unsent and rejected operations; send them, or decide about a rejected one"
                        ),
                        CommandEntry("cache clear", "remove what is stored; unsent changes are kept"),
                        CommandEntry(
                            "doctor [--recorder FILE]",
                            "check stores, outbox, network, memory and earlier runs, or those of an app",
                            options: ["--recorder"]
                        ),
                        CommandEntry("login [--user NAME] [--password WORD]"),
                        CommandEntry(
                            "logout [--force]",
                            "erases all data of the account on this device",
                            options: ["--force"]
                        ),
                    ]
                ),
                .init(
                    "TOUR",
                    [
                        CommandEntry(
                            "tour [CHAPTER]… [--reads KEYS]",
                            "measure on this machine what the cache does, without a server",
                            options: ["--reads", "--child"]
                        )
                    ]
                ),
            ]
        )
    }()

    private static let policies: [String: ReadPolicy] = [
        "cacheFirst": .cacheFirst, "cacheOnly": .cacheOnly, "networkOnly": .networkOnly,
        "networkFirst": .networkFirst(timeout: .seconds(2)), "staleWhileRevalidate": .staleWhileRevalidate,
        "cacheAndLoad": .cacheAndLoad,
    ]
    private static var policyNames: [String] { policies.keys.sorted() }
    private static var policyHelp: String {
        policyNames.prefix(3).joined(separator: ", ") + ",\n" + policyNames.dropFirst(3).joined(separator: ", ")
    }

    static func edit(_ text: String) throws(UsageError) -> ProfileEdit {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let field = ProfileEdit.Field(rawValue: String(parts[0])) else {
            let names = ProfileEdit.Field.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError(message: "--edit requires FIELD=TEXT, where FIELD is one of \(names), not '\(text)'")
        }
        return ProfileEdit(field: field, value: String(parts[1]))
    }
}
