import Larder
import LarderArguments
import LarderHTTP

/// The parsed command line.
struct Arguments {
    /// What `larder outbox` does.
    enum OutboxVerb: String {
        case list
        case send
        case retry
        /// Sends a rejected edit over what the server has.
        case keep
        /// Sends the fields of a rejected edit that the server has not changed.
        case merge
        /// Removes a rejected edit and asks for the server's value.
        case theirs
        case drop
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

    /// The command, such as `feed`; `help` or `version`.
    private(set) var name = "help"
    /// The words behind the command, which are valid for it.
    private(set) var words: [String] = []

    // MARK: Options of all and of reading commands

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
    var seconds: Int?
    var timeout = 10
    var drainTimeout = 3
    var wantsHelp = false
    var wantsVersion = false

    // MARK: Options of single commands

    var edits: [ProfileEdit] = []
    var note: String?
    var send: String?
    var photo: String?
    var tasks = TaskOptions()
    var width: Int?
    /// The file of an app's flight recorder, for `doctor`.
    var recorder: String?
    var isForced = false
    /// The keys that the tour reads through a memory tier.
    var reads: String?
    /// The directory of the tour's process that is killed.
    var child: String?

    /// Reads a command line.
    ///
    /// - Parameter environment: `LARDER_SERVER`, `LARDER_USER` and `LARDER_PASSWORD` are the defaults of `--server`, `--user` and
    ///   `--password`.
    init(_ words: [String], environment: [String: String] = [:]) throws(UsageError) {
        server = environment["LARDER_SERVER"].flatMap { $0.isEmpty ? nil : $0 } ?? server
        user = environment["LARDER_USER"].flatMap { $0.isEmpty ? nil : $0 }
        password = environment["LARDER_PASSWORD"].flatMap { $0.isEmpty ? nil : $0 }
        let table = Self.options
        var plain: [String] = []
        let given = try table.parse(
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
        if wantsVersion {
            if let extra = plain.first { throw UsageError(message: "--version takes no '\(extra)'") }
            name = "version"
        } else if plain.isEmpty || wantsHelp || plain[0] == "help" {
            self.words = Array(plain.drop { $0 == "help" }.prefix(1))
            if let topic = self.words.first { _ = try Self.commands.entry(topic) }
        } else {
            (name, self.words) = (plain[0], Array(plain.dropFirst()))
            try check(given.subtracting(table.names(of: Self.globalOptions)))
        }
    }

    // MARK: Words

    private func check(_ given: Set<String>) throws(UsageError) {
        let entry = try Self.commands.entry(name)
        func check(_ counts: ClosedRange<Int>, _ own: Set<String>? = nil) throws(UsageError) {
            guard counts.contains(words.count) else { throw Self.commands.wrong(name) }
            if let stray = given.subtracting(own ?? entry.options).sorted().first {
                let usage = Self.commands.wrong(name).message
                throw UsageError(message: "larder \(name) does not accept \(stray); \(usage)")
            }
        }
        switch name {
        case "feed":
            try check(0...1, words.isEmpty ? nil : entry.options.subtracting(["--live", "--seconds", "--limit"]))
            try checkPost()
        case "search":
            // What is typed is searched by the policy of the search.
            try check(0...100, words.isEmpty ? ["--limit"] : nil)
        case "profile":
            try check(0...1)
            if let who = words.first, !edits.isEmpty {
                throw UsageError(message: "only your own profile can be edited; remove '\(who)'")
            }
        case "like", "unlike":
            try check(1...1)
            // The server would reject an invalid ID, and the operation would stay in the outbox.
            try checkPost()
        case "accounts": try check(0...1, words.isEmpty ? entry.options.subtracting(["--limit"]) : nil)
        case "transfer": try check(3...3)
        case "tasks":
            switch try taskAction() {
            case .list: try check(0...1)
            case .add: try check(2...2, ["--assignee", "--due"])
            default: try check(2...3, [])
            }
        case "chat":
            try check(0...1)
            if words.isEmpty, send != nil {
                throw UsageError(message: "--send requires a conversation; 'larder chat' lists them")
            }
            if words.isEmpty, isLive {
                throw UsageError(message: "--live requires a conversation; 'larder chat' lists them")
            }
            if photo != nil, send == nil { throw UsageError(message: "--photo requires a message: --send TEXT") }
        case "outbox":
            try check(0...2)
            _ = try outboxAction()
        case "cache":
            try check(1...1)
            guard words[0] == "clear" else { throw Self.commands.wrong(name, words) }
        case "tour":
            let names = TourName.allCases.map(\.rawValue)
            try check(0...names.count)
            if let stray = words.first(where: { !names.contains($0) }) {
                throw UsageError(
                    message: "unknown chapter '\(stray)'; the chapters are \(names.joined(separator: ", "))"
                )
            }
        default: try check(0...0)
        }
        if seconds != nil, !isLive { throw UsageError(message: "--seconds ends --live; add --live") }
        guard isOffline else { return }
        let needed = [
            ("--live", isLive), ("--refresh", isRefresh), ("--explain", isExplaining), ("--inspect", isInspected),
            ("--policy networkOnly", policy?.name == "networkOnly"),
        ].first { $0.1 }
        if let (what, _) = needed { throw UsageError(message: "\(what) requires the server; remove --offline") }
    }

    /// Rejects a first word that is no post.
    private func checkPost() throws(UsageError) {
        guard let word = words.first, !word.hasPrefix("post_") || Int64(word.dropFirst(5)) == nil else { return }
        throw UsageError(message: "'\(word)' is not a post ID such as post_5; 'larder feed' shows the IDs")
    }

    /// What `larder outbox` does, with the operation; the number is 0 without one.
    func outboxAction() throws(UsageError) -> (verb: OutboxVerb, number: Int64) {
        guard let verb = OutboxVerb(rawValue: words.first ?? "list"),
            words.count <= 1 ? verb == .list || verb == .send : verb != .list && verb != .send
        else { throw Self.commands.wrong(name, words) }
        guard words.count > 1 else { return (verb, 0) }
        guard let number = Int64(words[1]), number > 0 else {
            throw UsageError(message: "'\(words[1])' is not an operation ID; 'larder outbox' lists them")
        }
        return (verb, number)
    }
}
