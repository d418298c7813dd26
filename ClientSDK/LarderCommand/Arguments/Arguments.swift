import Larder
import LarderArguments
import LarderCoding
import LarderHTTP

/// The parsed command line.
struct Arguments {
    enum Command: Sendable {
        /// The post is nil for the feed.
        case feed(post: String?)
        /// The text is nil for one that is typed.
        case search(String?)
        case profile(who: String?, edits: [ProfileEdit])
        case like(post: String, isLike: Bool)
        /// The account is nil for all.
        case accounts(String?)
        case transfer(from: String, to: String, amount: String, note: String)
        case chat(conversation: String?, send: String?, photo: String?)
        case tasks(TaskAction)
        case sync
        case outbox(OutboxAction)
        case cache(CacheAction)
        case images(draw: String?)
        case doctor
        case inspect(client: Int64?, InspectAction?)
        case login
        case logout(isForced: Bool)
        case tour(TourOrder)
        /// The child process of a chapter of the tour.
        case tourChild(directory: String)
        case help(String)
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

    /// What a client is asked to do.
    struct InspectAction: Sendable, Hashable {
        static let names = ["show", "hide", "invalidate", "refresh", "offline", "online", "drop"]
        let name: String
        /// The key of a value, or the ID of an operation.
        let subject: String?

        var members: [String: JSONValue] {
            guard let subject else { return [:] }
            return name == "drop" ? ["operation": .integer(Int64(subject) ?? 0)] : ["key": .string(subject)]
        }
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

    var command = Command.version
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
    /// Whether this client shows itself in the dashboard.
    var isInspected = false
    var policy: (name: String, value: ReadPolicy)?
    var color = Color.auto
    var limit: Int?
    var width: Int?
    var seconds: Int?
    /// The file of an app's flight recorder, for `doctor`.
    var recorder: String?
    var timeout = 10
    var drainTimeout = 3

    /// Options that only some commands accept.
    struct Flags {
        var edits: [ProfileEdit] = []
        var send: String?
        var photo: String?
        var draw: String?
        var tasks = TaskOptions()
        var page: String?
        var child: String?
        var note: String?
        var isForced = false
        var wantsHelp = false
        var wantsVersion = false
    }

    var flags = Flags()

    /// Reads a command line.
    ///
    /// - Parameter environment: `LARDER_SERVER`, `LARDER_USER` and `LARDER_PASSWORD` are the defaults of `--server`, `--user` and
    ///   `--password`.
    init(_ words: [String], environment: [String: String] = [:]) throws(UsageError) {
        server = environment["LARDER_SERVER"].flatMap { $0.isEmpty ? nil : $0 } ?? server
        user = environment["LARDER_USER"].flatMap { $0.isEmpty ? nil : $0 }
        password = environment["LARDER_PASSWORD"]
        let table = Self.options
        var plain: [String] = []
        var given = try table.parse(
            words,
            into: &self,
            unknown: "unknown option",
            orElse: "'larder help' lists the options"
        ) { _, word, rest in
            if word == "--" {
                plain += rest
                rest = []
            } else if word.hasPrefix("-"), word.count > 1 {
                return false
            } else {
                plain.append(word)
            }
            return true
        }
        if !server.contains("://") { server = "http://" + server }
        guard HTTPURL(server) != nil else {
            throw UsageError(message: "--server requires a URL or host such as http://127.0.0.1:8080, not '\(server)'")
        }
        while server.hasSuffix("/") { server.removeLast() }
        if flags.wantsVersion {
            if let extra = plain.first { throw UsageError(message: "--version takes no '\(extra)'") }
            command = .version
            return
        }
        if plain.isEmpty || flags.wantsHelp || plain[0] == "help" {
            command = .help(try Help.text(of: plain.first == "help" ? plain.dropFirst().first : plain.first))
            return
        }
        given.subtract(table.names(of: Self.globalOptions))
        command = try Self.command(plain[0], Array(plain.dropFirst()), given, flags)
        if isLive, isOffline { throw UsageError(message: "--live requires the server; remove --offline") }
        if isRefresh, isOffline { throw UsageError(message: "--refresh requires the server; remove --offline") }
    }

    // MARK: Commands

    private static func command(
        _ name: String,
        _ words: [String],
        _ given: Set<String>,
        _ flags: Flags
    ) throws(UsageError) -> Command {
        let entry = try commands.entry(name)
        func check(_ counts: ClosedRange<Int>, _ own: Set<String>? = nil) throws(UsageError) {
            guard counts.contains(words.count) else { throw commands.wrong(name) }
            if let stray = given.subtracting(own ?? entry.options).sorted().first {
                throw UsageError(message: "larder \(name) does not accept \(stray); \(commands.wrong(name).message)")
            }
        }
        switch name {
        case "feed":
            try check(0...1)
            if let post = words.first {
                try check(1...1, entry.options.subtracting(["--live", "--seconds", "--limit"]))
                try checkPost(post)
            }
            return .feed(post: words.first)
        case "search":
            try check(0...100)
            return .search(words.isEmpty ? nil : words.joined(separator: " "))
        case "profile":
            try check(0...1)
            if let who = words.first, !flags.edits.isEmpty {
                throw UsageError(message: "only your own profile can be edited; remove '\(who)'")
            }
            return .profile(who: words.first, edits: flags.edits)
        case "like", "unlike":
            try check(1...1)
            // The server would reject an invalid ID, and the operation would stay in the outbox.
            try checkPost(words[0])
            return .like(post: words[0], isLike: name == "like")
        case "accounts":
            try check(0...1, words.isEmpty ? entry.options.subtracting(["--limit"]) : nil)
            return .accounts(words.first)
        case "transfer":
            try check(3...3)
            return .transfer(from: words[0], to: words[1], amount: words[2], note: flags.note ?? "")
        case "tasks":
            let action = try tasks(words, flags.tasks)
            switch action {
            case .list: try check(0...1)
            case .add: try check(2...2, ["--assignee", "--due"])
            default: try check(2...3, [])
            }
            return .tasks(action)
        case "chat":
            try check(0...1)
            if words.isEmpty, flags.send != nil {
                throw UsageError(message: "--send requires a conversation; 'larder chat' lists them")
            }
            if flags.photo != nil, flags.send == nil {
                throw UsageError(message: "--photo requires a message: --send TEXT")
            }
            return .chat(conversation: words.first, send: flags.send, photo: flags.photo)
        case "sync":
            try check(0...0)
            return .sync
        case "outbox":
            try check(0...2)
            return .outbox(try outbox(words))
        case "cache":
            try check(1...1)
            return .cache(try cache(words))
        case "images":
            try check(0...0)
            return .images(draw: flags.draw)
        case "doctor":
            try check(0...0)
            return .doctor
        case "inspect":
            try check(0...3)
            return try inspect(words)
        case "tour":
            let names = TourOrder.Name.allCases.map(\.rawValue)
            try check(0...names.count)
            if let child = flags.child { return .tourChild(directory: child) }
            if let stray = words.first(where: { !names.contains($0) }) {
                throw UsageError(
                    message: "unknown chapter '\(stray)'; the chapters are \(names.joined(separator: ", "))"
                )
            }
            return .tour(TourOrder(names: words.compactMap { TourOrder.Name(rawValue: $0) }, page: flags.page))
        case "login":
            try check(0...0)
            return .login
        default:
            try check(0...0)
            return .logout(isForced: flags.isForced)
        }
    }

    private static func checkPost(_ word: String) throws(UsageError) {
        guard word.hasPrefix("post_"), Int64(word.dropFirst(5)) != nil else {
            throw UsageError(message: "'\(word)' is not a post ID such as post_5; 'larder feed' shows the IDs")
        }
    }

    private static func outbox(_ words: [String]) throws(UsageError) -> OutboxAction {
        switch (words.first, words.dropFirst().first) {
        case (nil, nil), ("list", nil): return .list
        case ("send", nil): return .send
        case ("retry", let text?): return .retry(try identifier(text))
        case ("keep", let text?): return .keep(try identifier(text))
        case ("merge", let text?): return .merge(try identifier(text))
        case ("theirs", let text?): return .theirs(try identifier(text))
        case ("drop", let text?): return .drop(try identifier(text))
        default: throw commands.wrong("outbox", words)
        }
    }

    private static func inspect(_ words: [String]) throws(UsageError) -> Command {
        guard let first = words.first else { return .inspect(client: nil, nil) }
        guard let client = Int64(first), client > 0 else {
            throw UsageError(message: "'\(first)' is not the number of a client; 'larder inspect' lists them")
        }
        guard words.count > 1 else { return .inspect(client: client, nil) }
        let needsSubject = !["offline", "online"].contains(words[1])
        guard InspectAction.names.contains(words[1]), words.count == (needsSubject ? 3 : 2),
            words[1] != "drop" || Int64(words[2]) != nil
        else { throw commands.wrong("inspect", words.dropFirst()) }
        return .inspect(client: client, InspectAction(name: words[1], subject: needsSubject ? words[2] : nil))
    }

    private static func cache(_ words: [String]) throws(UsageError) -> CacheAction {
        switch words.first {
        case "stats": return .stats
        case "clear": return .clear
        default: throw commands.wrong("cache", words)
        }
    }

    private static func identifier(_ text: String) throws(UsageError) -> Int64 {
        guard let number = Int64(text), number > 0 else {
            throw UsageError(message: "'\(text)' is not an operation ID; 'larder outbox' lists them")
        }
        return number
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
        case .inspect: "inspect"
        case .login: "login"
        case .logout: "logout"
        case .help: "help"
        case .version: "version"
        }
    }
}
