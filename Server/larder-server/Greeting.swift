import LarderHTTP
import LarderServer

/// The text that is printed when the server has started.
enum Greeting {
    static func text(_ backend: MockBackend, _ arguments: Arguments) -> String {
        let url = backend.url
        let secure = backend.secureURL.map { "\nEncrypted: \($0)   trust: larder-server certificate" } ?? ""
        if let target = arguments.upstream?.origin ?? arguments.recording.map({ "the recording \($0)" }) {
            let control = arguments.hasControl ? "Dashboard: \(url)/_larder/   " : ""
            return """
                Larder serves \(url), in front of \(target)\(secure)

                Try:
                  curl -i '\(url)/'
                  larder-server faults add '{"action":{"type":"loseReply"}}' --server \(url)
                  larder-server journal --server \(url)

                \(control)Stop: Ctrl-C
                """
        }
        let collections = backend.collections
        let routes = backend.routes
        if !routes.isEmpty, collections.isEmpty, arguments.fixtures == nil, arguments.worldSize == nil {
            let dashboard = arguments.hasControl ? "Dashboard: \(url)/_larder/   " : ""
            let first = routes.first { $0.hasPrefix("GET ") && !$0.contains("{") && !$0.contains("*") }
            return """
                Larder serves \(url)\(secure)

                Routes: \(routes.prefix(20).joined(separator: ", "))\(routes.count > 20 ? ", …" : "")

                Try:
                  curl -i '\(url)\(first?.dropFirst(4) ?? "/")'
                  larder-server journal --server \(url)

                \(dashboard)Stop: Ctrl-C
                """
        }
        if let first = collections.first {
            let dashboard = arguments.hasControl ? "\nDashboard: \(url)/_larder/" : ""
            return """
                Larder serves \(url)\(secure)

                Collections: \(collections.map { "/" + $0 }.joined(separator: " "))

                Try:
                  curl -i '\(url)/\(first)?_limit=2'
                  curl -N '\(url)/live'

                API: \(url)/openapi.json   Stop: Ctrl-C\(dashboard)
                """
        }
        let people = (try? backend.developerTokens(2)) ?? []
        let first = people.first?.token ?? "…"
        let tokens = people.map { "  \($0.name.padded(to: 18))\($0.token)" }.joined(separator: "\n")
        let dashboard = arguments.hasControl ? "\nDashboard: \(url)/_larder/" : ""
        return """
            Larder serves \(url)\(secure)

            Try:
              curl '\(url)/v1/feed?limit=2'
              curl -i '\(url)/v1/profiles/user_1'
              curl -H 'Authorization: Bearer \(first)' '\(url)/v1/accounts'

            Tokens (every user has one: dev-HANDLE):
            \(tokens)

            API: \(url)/openapi.json   Stop: Ctrl-C\(dashboard)
            """
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(1, width - count)) }
}
