import LarderHTTP
import LarderServer

/// The text that is printed when the server has started.
enum Greeting {
    static func text(_ backend: MockBackend, _ arguments: Arguments) -> String {
        let url = backend.url
        let secure = backend.secureURL.map { "\nEncrypted: \($0)   trust: larder-server certificate" } ?? ""
        let dashboard = arguments.configuration.hasControl ? "Dashboard: \(url)/_larder/" : ""
        let stop = "\(dashboard.isEmpty ? "" : dashboard + "   ")Stop: Ctrl-C"
        let (routes, collections) = (backend.routes, backend.collections)
        var parts = ["Larder serves \(url)\(secure)"]
        if let target = arguments.upstream?.origin ?? arguments.recording.map({ "the recording \($0)" }) {
            parts = [
                "Larder serves \(url), in front of \(target)\(secure)",
                """
                Try:
                  curl -i '\(url)/'
                  larder-server faults add '{"action":{"type":"loseReply"}}' --server \(url)
                  larder-server journal --server \(url)
                """, stop,
            ]
        } else if !routes.isEmpty, collections.isEmpty, arguments.fixtures == nil, arguments.worldSize == nil {
            let first = routes.first { $0.hasPrefix("GET ") && !$0.contains("{") && !$0.contains("*") }
            parts += [
                "Routes: \(routes.prefix(20).joined(separator: ", "))\(routes.count > 20 ? ", …" : "")",
                """
                Try:
                  curl -i '\(url)\(first?.dropFirst(4) ?? "/")'
                  larder-server journal --server \(url)
                """, stop,
            ]
        } else if let first = collections.first {
            parts += [
                "Collections: \(collections.map { "/" + $0 }.joined(separator: " "))",
                """
                Try:
                  curl -i '\(url)/\(first)?_limit=2'
                  curl -N '\(url)/live'
                """, stop,
            ]
        } else {
            let people = (try? backend.developerTokens(2)) ?? []
            let tokens = people.map { "  \($0.name.padded(to: 18))\($0.token)" }.joined(separator: "\n")
            parts += [
                """
                Try:
                  curl '\(url)/v1/feed?limit=2'
                  curl -i '\(url)/v1/profiles/user_1'
                  curl -H 'Authorization: Bearer \(people.first?.token ?? "…")' '\(url)/v1/accounts'
                """,
                "Tokens (every user has one: dev-HANDLE):\n\(tokens)",
                "API: \(url)/openapi.json   Stop: Ctrl-C\(dashboard.isEmpty ? "" : "\n" + dashboard)",
            ]
        }
        return parts.joined(separator: "\n\n")
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(1, width - count)) }
}
