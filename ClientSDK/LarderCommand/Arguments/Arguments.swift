import Larder
import LarderArguments

/// The parsed command line.
struct Arguments {
    enum Command: Sendable {
        case feed
        case search(String)
        case profile(who: String?, edits: [ProfileEdit])
        case like(post: String, isLike: Bool)
        case accounts
        case transfer(from: String, to: String, amount: String, note: String)
        case chat(conversation: String?, send: String?)
        case tasks(TaskAction)
        case sync
        case outbox(OutboxAction)
        case cache(CacheAction)
        case images(draw: String?)
        case doctor
        case login
        case logout(isForced: Bool)
        case tour(TourOrder)
        /// The child process of a chapter of the tour.
        case tourChild(directory: String)
        case help
        case version
    }

    enum OutboxAction: Sendable, Hashable {
        case list
        case send
        case retry(Int64)
        /// Sends a rejected edit over what the server has.
        case keep(Int64)
        /// Sends the fields of a rejected edit that the server has not changed.
        case merge(Int64)
        /// Removes a rejected edit and asks for the server's value.
        case theirs(Int64)
        case drop(Int64)
    }

    enum CacheAction: Sendable, Hashable {
        case stats
        case clear
    }

    /// A field of a profile and its new value.
    struct ProfileEdit: Sendable, Hashable {
        enum Field: String, CaseIterable {
            case displayName, bio, location
        }
        var field: Field
        var value: String
    }

    /// When the output is coloured.
    enum Color: String, CaseIterable {
        case auto, always, never
    }

    var command = Command.help
    var server = "http://127.0.0.1:8080"
    var user: String?
    var password: String?
    var directory: String?
    var isOffline = false
    var isJSON = false
    var isLive = false
    var isRefresh = false
    var isTracing = false
    var isExplaining = false
    var policy: (name: String, value: ReadPolicy)?
    var color = Color.auto
    var limit: Int?
    var width: Int?
    var seconds: Int?
    /// The file of an app's flight recorder, for `doctor`.
    var recorder: String?
    var timeout = 10
    var drainTimeout = 3

    /// The options that every command accepts.
    private static let globalOptions: Set<String> = [
        "--server", "--user", "--password", "--directory", "--offline", "--json", "--colour", "--color", "--timeout",
        "--wait", "--trace", "--explain", "--help", "--version",
    ]

    /// Reads a command line.
    ///
    /// - Parameter environment: `LARDER_SERVER`, `LARDER_USER` and `LARDER_PASSWORD` are the defaults of `--server`, `--user` and
    ///   `--password`.
    init(_ words: [String], environment: [String: String] = [:]) throws(UsageError) {
        server = environment["LARDER_SERVER"].flatMap { $0.isEmpty ? nil : $0 } ?? server
        user = environment["LARDER_USER"].flatMap { $0.isEmpty ? nil : $0 }
        password = environment["LARDER_PASSWORD"]
        var flags = Flags()
        var plain: [String] = []
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--" {
                plain += rest
                break
            }
            if word.hasPrefix("-"), word.count > 1 { try take(word, &rest, &flags) } else { plain.append(word) }
        }
        guard server.hasPrefix("http://") || server.hasPrefix("https://"), server.count > 8 else {
            throw UsageError(
                message: "--server requires an http or https URL such as http://127.0.0.1:8080, not '\(server)'"
            )
        }
        while server.hasSuffix("/") { server.removeLast() }
        if flags.wantsVersion {
            command = .version
            return
        }
        guard let name = plain.first, !flags.wantsHelp, name != "help" else {
            command = .help
            return
        }
        command = try Self.command(name, Array(plain.dropFirst()), flags)
        if isLive, isOffline { throw UsageError(message: "--live requires the server; remove --offline") }
        if isRefresh, isOffline { throw UsageError(message: "--refresh requires the server; remove --offline") }
    }

    /// Options that only some commands accept.
    private struct Flags {
        var given: Set<String> = []
        var edits: [ProfileEdit] = []
        var send: String?
        var draw: String?
        var tasks = TaskOptions()
        var page: String?
        var child: String?
        var note = ""
        var isForced = false
        var wantsHelp = false
        var wantsVersion = false
    }

    private mutating func take(
        _ word: String,
        _ rest: inout ArraySlice<String>,
        _ flags: inout Flags
    ) throws(UsageError) {
        let (name, inline) = FlagParser.split(word)
        if !Self.globalOptions.contains(name) { flags.given.insert(name) }
        switch name {
        case "--help", "-h": flags.wantsHelp = true
        case "--version": flags.wantsVersion = true
        case "--offline": isOffline = true
        case "--json": isJSON = true
        case "--live": isLive = true
        case "--refresh": isRefresh = true
        case "--trace": isTracing = true
        case "--explain": isExplaining = true
        case "--force": flags.isForced = true
        case "--server": server = try FlagParser.value(name, inline, &rest)
        case "--user": user = try FlagParser.value(name, inline, &rest)
        case "--password": password = try FlagParser.value(name, inline, &rest)
        case "--directory": directory = try FlagParser.value(name, inline, &rest)
        case "--send": flags.send = try FlagParser.value(name, inline, &rest)
        case "--draw": flags.draw = try FlagParser.value(name, inline, &rest)
        case "--recorder": recorder = try FlagParser.value(name, inline, &rest)
        case "--status": flags.tasks.status = try FlagParser.value(name, inline, &rest)
        case "--assignee": flags.tasks.assignee = try FlagParser.value(name, inline, &rest)
        case "--due": flags.tasks.due = try FlagParser.value(name, inline, &rest)
        case "--sort": flags.tasks.sort = try FlagParser.value(name, inline, &rest)
        case "--html": flags.page = try FlagParser.value(name, inline, &rest)
        case "--child": flags.child = try FlagParser.value(name, inline, &rest)
        case "--note": flags.note = try FlagParser.value(name, inline, &rest)
        case "--edit": flags.edits.append(try Self.edit(try FlagParser.value(name, inline, &rest)))
        case "--limit": limit = try FlagParser.number(name, inline, &rest, 1...50)
        case "--width": width = try FlagParser.number(name, inline, &rest, 2...4_096)
        case "--seconds": seconds = try FlagParser.number(name, inline, &rest, 1...86_400)
        case "--timeout": timeout = try FlagParser.number(name, inline, &rest, 1...3_600)
        case "--wait": drainTimeout = try FlagParser.number(name, inline, &rest, 0...3_600)
        case "--policy":
            let text = try FlagParser.value(name, inline, &rest)
            guard let value = Self.policies[text] else {
                let names = Self.policies.keys.sorted().joined(separator: ", ")
                throw UsageError(message: "--policy requires one of \(names), not '\(text)'")
            }
            policy = (text, value)
        case "--colour", "--color":
            let text = try FlagParser.value(name, inline, &rest)
            guard let value = Color(rawValue: text) else {
                throw UsageError(message: "\(name) requires auto, always or never, not '\(text)'")
            }
            color = value
        default: throw UsageError(message: "unknown option '\(word)'; 'larder help' lists the options")
        }
    }

    private static let policies: [String: ReadPolicy] = [
        "cacheFirst": .cacheFirst, "cacheOnly": .cacheOnly, "networkOnly": .networkOnly,
        "networkFirst": .networkFirst(timeout: .seconds(2)), "staleWhileRevalidate": .staleWhileRevalidate,
        "cacheAndLoad": .cacheAndLoad,
    ]

    // MARK: Commands

    private static func command(_ name: String, _ words: [String], _ flags: Flags) throws(UsageError) -> Command {
        func check(_ usage: String, _ counts: ClosedRange<Int>, _ own: Set<String> = []) throws(UsageError) {
            guard counts.contains(words.count) else { throw UsageError(message: "usage: larder \(usage)") }
            if let stray = flags.given.subtracting(own).sorted().first {
                throw UsageError(message: "larder \(name) does not accept \(stray); usage: larder \(usage)")
            }
        }
        let reading: Set<String> = ["--refresh", "--policy"]
        let live: Set<String> = ["--live", "--seconds", "--limit"]
        switch name {
        case "feed":
            try check("feed [--live] [--limit N]", 0...0, reading.union(live))
            return .feed
        case "search":
            try check("search TEXT [--limit N]", 1...100, reading.union(["--limit"]))
            return .search(words.joined(separator: " "))
        case "profile":
            try check("profile [ID|HANDLE] [--edit FIELD=TEXT]…", 0...1, reading.union(["--edit"]))
            if let who = words.first, !flags.edits.isEmpty {
                throw UsageError(message: "only your own profile can be edited; remove '\(who)'")
            }
            return .profile(who: words.first, edits: flags.edits)
        case "like", "unlike":
            try check("\(name) POST", 1...1)
            // The server would reject an invalid ID, and the operation would stay in the outbox.
            guard words[0].hasPrefix("post_"), Int64(words[0].dropFirst(5)) != nil else {
                throw UsageError(message: "'\(words[0])' is not a post ID such as post_5; 'larder feed' shows the IDs")
            }
            return .like(post: words[0], isLike: name == "like")
        case "accounts":
            try check("accounts", 0...0, reading)
            return .accounts
        case "transfer":
            try check("transfer FROM TO AMOUNT [--note TEXT]", 3...3, ["--note"])
            return .transfer(from: words[0], to: words[1], amount: words[2], note: flags.note)
        case "tasks":
            let action = try tasks(words, flags.tasks)
            var own: Set<String> = []
            if case .list = action { own = reading.union(["--limit", "--status", "--assignee", "--due", "--sort"]) }
            if case .add = action { own = ["--assignee", "--due"] }
            try check(tasksUsage, 0...3, own)
            return .tasks(action)
        case "chat":
            try check("chat [CONVERSATION] [--send TEXT] [--live]", 0...1, reading.union(live).union(["--send"]))
            if words.isEmpty, flags.send != nil {
                throw UsageError(message: "--send requires a conversation; 'larder chat' lists them")
            }
            return .chat(conversation: words.first, send: flags.send)
        case "sync":
            try check("sync [--live]", 0...0, ["--live", "--seconds"])
            return .sync
        case "outbox":
            try check("outbox [send | (retry | keep | merge | theirs | drop) ID]", 0...2)
            return .outbox(try outbox(words))
        case "cache":
            try check("cache stats | clear", 1...1)
            return .cache(try cache(words))
        case "images":
            try check("images [--limit N] [--width N] [--draw POST|IMAGE]", 0...0, ["--limit", "--draw", "--width"])
            return .images(draw: flags.draw)
        case "doctor":
            try check("doctor [--recorder FILE]", 0...0, ["--recorder"])
            return .doctor
        case "tour":
            let names = TourOrder.Name.allCases.map(\.rawValue)
            try check("tour [CHAPTER]… [--html FILE]", 0...names.count, ["--html", "--child"])
            if let child = flags.child { return .tourChild(directory: child) }
            if let stray = words.first(where: { !names.contains($0) }) {
                throw UsageError(
                    message: "unknown chapter '\(stray)'; the chapters are \(names.joined(separator: ", "))"
                )
            }
            return .tour(TourOrder(names: words.compactMap { TourOrder.Name(rawValue: $0) }, page: flags.page))
        case "login":
            try check("login [--user NAME] [--password WORD]", 0...0)
            return .login
        case "logout":
            try check("logout [--force]", 0...0, ["--force"])
            return .logout(isForced: flags.isForced)
        default: throw UsageError(message: "unknown command '\(name)'; 'larder help' lists the commands")
        }
    }

    private static func outbox(_ words: [String]) throws(UsageError) -> OutboxAction {
        switch (words.first, words.dropFirst().first) {
        case (nil, nil): return .list
        case ("send", nil): return .send
        case ("retry", let text?): return .retry(try identifier(text))
        case ("keep", let text?): return .keep(try identifier(text))
        case ("merge", let text?): return .merge(try identifier(text))
        case ("theirs", let text?): return .theirs(try identifier(text))
        case ("drop", let text?): return .drop(try identifier(text))
        default: throw UsageError(message: "usage: larder outbox [send | (retry | keep | merge | theirs | drop) ID]")
        }
    }

    private static func cache(_ words: [String]) throws(UsageError) -> CacheAction {
        switch words.first {
        case "stats": return .stats
        case "clear": return .clear
        default: throw UsageError(message: "usage: larder cache stats | clear")
        }
    }

    private static func identifier(_ text: String) throws(UsageError) -> Int64 {
        guard let number = Int64(text), number > 0 else {
            throw UsageError(message: "'\(text)' is not an operation ID; 'larder outbox' lists them")
        }
        return number
    }

    private static func edit(_ text: String) throws(UsageError) -> ProfileEdit {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let field = ProfileEdit.Field(rawValue: String(parts[0])) else {
            let names = ProfileEdit.Field.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError(message: "--edit requires FIELD=TEXT, where FIELD is one of \(names), not '\(text)'")
        }
        return ProfileEdit(field: field, value: String(parts[1]))
    }
}

extension Arguments.Command {
    /// The command's name on the command line.
    var name: String {
        switch self {
        case .feed: "feed"
        case .search: "search"
        case .profile: "profile"
        case .like(_, let isLike): isLike ? "like" : "unlike"
        case .accounts: "accounts"
        case .transfer: "transfer"
        case .chat: "chat"
        case .tasks: "tasks"
        case .sync: "sync"
        case .tour, .tourChild: "tour"
        case .outbox: "outbox"
        case .cache: "cache"
        case .images: "images"
        case .doctor: "doctor"
        case .login: "login"
        case .logout: "logout"
        case .help: "help"
        case .version: "version"
        }
    }
}
