import Larder
import LarderArguments
import LarderCoding

/// `larder inspect`: the clients that show themselves at a server (`APIClient.Configuration.inspector`).
struct InspectCommand {
    let control: ControlClient
    let terminal: Terminal

    /// - Parameter action: what a client is asked to do; nil: to report.
    func run(_ client: Int64?, _ action: Arguments.InspectAction?) async throws(Failure) {
        if let client, let action { try await control.post("/clients/\(client)/\(action.name)", action.members) }
        let document = try await control.get("/clients")
        let items = (document["items"]?.array ?? []).filter { client == nil || $0["id"]?.integer == client }
        if terminal.isJSON { return terminal.json(.members([("items", .array(items))])) }
        guard !items.isEmpty else {
            let name = client.map { "client \($0)" } ?? "client"
            return terminal.line(
                "no \(name) is connected to \(control.server); set APIClient.Configuration.inspector to this URL, or add --inspect"
            )
        }
        for item in items { show(item) }
    }

    private func show(_ client: JSONValue) {
        let number = client["id"]?.integer ?? 0
        guard let account = client["account"]?.string else {
            return terminal.line("\(number) does not answer")
        }
        let memory = client["memory"]?["bytes"]?.integer.map { SizeText.text($0) + " in memory" }
        let facts = [client["server"]?.string, client["session"]?.string, client["network"]?.string, memory]
        terminal.line(terminal.paint("\(number) \(account)", .bold) + "  " + line(facts, by: ", "))
        part("outbox", client["operations"]) { operation in
            [
                "\(operation["id"]?.integer ?? 0) \(operation["operation"]?.string ?? "")", operation["state"]?.string,
                operation["scope"]?.string, operation["error"]?.string,
            ]
        }
        part("values", client["values"]) { value in
            let pending = value["pendingChanges"]?.integer ?? 0
            return [
                value["key"]?.string, value["freshness"]?.string, value["source"]?.string.map { "from " + $0 },
                pending > 0 ? "\(pending) pending" : nil, value["isFetching"] == .bool(true) ? "fetching" : nil,
                value["error"]?.string, value["text"]?.string,
            ]
        }
        part("requests", client["requests"]) { request in
            let time = request["milliseconds"]?.integer.map { Duration.milliseconds($0) }
            let answer = request["status"]?.integer.map { String($0) } ?? request["failure"]?.string
            let verdicts = (request["verdicts"]?.array ?? []).map { $0["text"]?.string }
            return [
                "\(request["method"]?.string ?? "") \(path(request["url"]?.string ?? ""))", answer ?? "in flight",
                time.flatMap { $0 > .zero ? TimeText.text($0) : nil },
                request["entry"]?.integer.map { "#\($0)" }, request["reason"]?.string,
            ] + verdicts
        }
    }

    /// A URL without the server, which the line of the client has.
    private func path(_ url: String) -> String {
        url.hasPrefix(control.server) ? String(url.dropFirst(control.server.count)) : url
    }

    private func part(_ title: String, _ items: JSONValue?, _ texts: (JSONValue) -> [String?]) {
        guard let items = items?.array, !items.isEmpty else { return }
        terminal.line("  " + terminal.paint(title, .dim))
        for item in items { terminal.line("    " + line(texts(item), by: "  ")) }
    }

    private func line(_ texts: [String?], by separator: String) -> String {
        texts.compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: separator)
    }
}
