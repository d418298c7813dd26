import LarderServer

/// Why a command line cannot be carried out; one line that says what to do.
struct UsageError: Error {
    let message: String
}

/// What the command line asks for.
struct Arguments {
    enum Action {
        case serve
        case check
        case checkHealth(url: String)
        case help
        case version
    }

    var action = Action.serve
    var host = "127.0.0.1"
    var port = 8080
    var database: String?
    var fixtures = "Fixtures"
    var numbers: WorldNumbers?
    var loops = 1
    var log: String?
    var isQuiet = false
    var rateLimit: Int?
    var headLimit: Int?
    var bodyLimit: Int?
    var connectionLimit: Int?
    var headTimeout: Int?
    var idleTimeout: Int?
    var tokenTTL: Int?
    var tombstoneRetention: Int?
    var isDurable = true
    var usesResponseCache = true
    var usesPoll = false

    init(_ words: [String]) throws(UsageError) {
        var rest = words[...]
        while let flag = rest.popFirst() {
            let (name, inline) = Self.split(flag)
            switch name {
            case "--help", "-h": action = .help
            case "--version": action = .version
            case "--check": action = .check
            case "--check-health": action = .checkHealth(url: try Self.value(name, inline, &rest))
            case "--host": host = try Self.value(name, inline, &rest)
            case "--port": port = try Self.number(name, inline, &rest, 0...65_535)
            case "--database": database = try Self.value(name, inline, &rest)
            case "--fixtures": fixtures = try Self.value(name, inline, &rest)
            case "--seed":
                let text = try Self.value(name, inline, &rest)
                guard let seed = UInt64(text) else {
                    throw UsageError(message: "--seed takes a whole number, not «\(text)»")
                }
                change { $0.seed = seed }
            case "--people":
                let count = try Self.number(name, inline, &rest, 1...1_000_000)
                change { $0.people = count }
            case "--posts":
                let count = try Self.number(name, inline, &rest, 0...10_000_000)
                change { $0.posts = count }
            case "--messages":
                let count = try Self.number(name, inline, &rest, 0...10_000_000)
                change { $0.messages = count }
            case "--conversations":
                let count = try Self.number(name, inline, &rest, 0...1_000_000)
                change { $0.conversations = count }
            case "--transfers":
                let count = try Self.number(name, inline, &rest, 0...10_000_000)
                change { $0.transfers = count }
            case "--loops": loops = try Self.number(name, inline, &rest, 1...256)
            case "--log":
                let format = try Self.value(name, inline, &rest)
                guard format == "text" || format == "json" else {
                    throw UsageError(message: "--log takes text or json, not «\(format)»")
                }
                log = format
            case "--quiet", "-q": isQuiet = true
            case "--rate-limit": rateLimit = try Self.number(name, inline, &rest, 1...1_000_000_000)
            case "--head-limit": headLimit = try Self.number(name, inline, &rest, 256...1 << 20)
            case "--body-limit": bodyLimit = try Self.number(name, inline, &rest, 0...1 << 30)
            case "--connection-limit": connectionLimit = try Self.number(name, inline, &rest, 1...1_000_000)
            case "--head-timeout": headTimeout = try Self.number(name, inline, &rest, 1...3_600)
            case "--idle-timeout": idleTimeout = try Self.number(name, inline, &rest, 1...86_400)
            case "--token-ttl": tokenTTL = try Self.number(name, inline, &rest, 1...31_536_000)
            case "--tombstone-retention": tombstoneRetention = try Self.number(name, inline, &rest, 1...31_536_000)
            case "--no-power-loss-safety": isDurable = false
            case "--no-response-cache": usesResponseCache = false
            case "--poll": usesPoll = true
            default: throw UsageError(message: "unknown argument «\(flag)»; --help lists what there is")
            }
        }
        if numbers != nil, case .check = action {
            throw UsageError(message: "--check looks at a database; leave out --seed and the sizes")
        }
        if case .check = action, database == nil { throw UsageError(message: "--check needs --database PATH") }
    }

    private mutating func change(_ body: (inout WorldNumbers) -> Void) {
        var changed = numbers ?? WorldNumbers()
        body(&changed)
        numbers = changed
    }

    private static func split(_ flag: String) -> (name: String, value: String?) {
        guard flag.hasPrefix("--"), let equals = flag.firstIndex(of: "=") else { return (flag, nil) }
        return (String(flag[..<equals]), String(flag[flag.index(after: equals)...]))
    }

    private static func value(
        _ name: String,
        _ inline: String?,
        _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> String {
        guard let value = inline ?? rest.popFirst(), !value.isEmpty else {
            throw UsageError(message: "\(name) needs a value")
        }
        return value
    }

    private static func number(
        _ name: String,
        _ inline: String?,
        _ rest: inout ArraySlice<String>,
        _ range: ClosedRange<Int>
    ) throws(UsageError) -> Int {
        let text = try value(name, inline, &rest)
        guard let number = Int(text), range.contains(number) else {
            throw UsageError(
                message: "\(name) takes a whole number from \(range.lowerBound) to \(range.upperBound), not «\(text)»"
            )
        }
        return number
    }
}
