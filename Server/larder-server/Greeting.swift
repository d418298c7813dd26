import Glibc
import LarderHTTP
import LarderServer

/// The text that is printed when the server has started.
enum Greeting {
    static func text(_ backend: MockBackend, _ arguments: Arguments) -> String {
        let url = backend.url
        let front = arguments.upstream?.origin ?? arguments.recording.map { "the recording \($0)" }
        let (routes, collections) = (backend.routes, backend.collections)
        let isDemo =
            front == nil && collections.isEmpty
            && (routes.isEmpty || arguments.fixtures != nil || arguments.worldSize != nil)
        var people: [(name: String, token: String)] = []
        do { if isDemo { people = try backend.developerTokens(2) } } catch {
            // Without tokens the text is still useful. Each of its commands states the error.
        }

        var parts = ["Larder serves \(url)\(front.map { ", in front of \($0)" } ?? "")"]
        if let secure = backend.secureURL {
            parts[0] +=
                "\nEncrypted: \(secure)" + (arguments.certificate == nil ? "   trust: larder-server certificate" : "")
        }
        if !routes.isEmpty {
            let routes = routes.reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
            parts.append("Routes: \(routes.prefix(20).joined(separator: ", "))\(routes.count > 20 ? ", …" : "")")
        }
        if !collections.isEmpty { parts.append("Collections: \(collections.map { "/" + $0 }.joined(separator: " "))") }

        var tries: [String] = []
        if let read = routes.first(where: { $0.hasPrefix("GET ") && !$0.contains("{") && !$0.contains("*") }) {
            tries.append("curl -i '\(url)\(read.dropFirst(4))'")
        }
        if let first = collections.first { tries += ["curl -i '\(url)/\(first)?_limit=2'", "curl -N '\(url)/live'"] }
        if arguments.upstream != nil { tries.append("curl -i '\(url)/'") }
        if isDemo {
            tries += ["curl '\(url)/v1/feed?limit=2'", "curl -i '\(url)/v1/profiles/user_1'"]
            tries += people.prefix(1).map { "curl -H 'Authorization: Bearer \($0.token)' '\(url)/v1/accounts'" }
        } else if arguments.configuration.hasControl {
            tries.append("larder-server faults add '{\"action\":{\"type\":\"loseReply\"}}' --server \(url)")
            tries.append("larder-server journal --server \(url)")
        }
        if !tries.isEmpty { parts.append("Try:\n" + tries.map { "  " + $0 }.joined(separator: "\n")) }

        if !people.isEmpty {
            let tokens = people.map { "\n  \($0.name.padded(to: 18))\($0.token)" }.joined()
            parts.append("Tokens (every user has one: dev-HANDLE):" + tokens)
        }
        var end: [String] = []
        if isDemo { end.append("API: \(url)/openapi.json") }
        if arguments.configuration.hasControl { end.append("Dashboard: \(url)/_larder/") }
        end.append("Stop: Ctrl-C, or kill \(getpid())")
        parts.append(end.joined(separator: "\n"))
        return parts.joined(separator: "\n\n")
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(1, width - count)) }
}
