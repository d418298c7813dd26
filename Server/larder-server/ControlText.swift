import LarderCoding
import LarderServer

/// Formats replies of the control plane as text.
enum ControlText {
    /// A problem in one line.
    static func problem(_ body: [UInt8]) -> String {
        guard let value = try? JSONParser.parse(body), let title = value["title"]?.string else {
            return String(decoding: body, as: UTF8.self)
        }
        var text = value["detail"]?.string ?? title
        for error in value["errors"]?.array ?? [] {
            let parts = [error["pointer"]?.string ?? "", error["detail"]?.string ?? ""].filter { !$0.isEmpty }
            text += "\n  " + parts.joined(separator: " ")
        }
        if let nearest = value["nearest"]?.array, !nearest.isEmpty {
            text += " Nearest: " + nearest.compactMap(\.string).joined(separator: ", ")
        }
        return text
    }

    /// A list as lines, any other value as indented JSON.
    static func readable(_ body: [UInt8]) -> String {
        guard let value = try? JSONParser.parse(body) else { return String(decoding: body, as: UTF8.self) }
        guard let items = value["items"]?.array else { return indented(value) }
        let warnings = (value["warnings"]?.array ?? []).map { warning -> String in
            if let text = warning.string { return text }
            let fault = plain(warning["fault"])
            guard let reason = warning["neverMatches"] else {
                return "\(fault) matches requests that are not served: \(plain(warning["notServed"]))"
            }
            return "\(fault) never applies: \(plain(reason))"
        }
        let note = value["hasMore"]?.bool == true ? ["(older entries are not shown)"] : []
        return items.isEmpty ? "none" : (note + items.map(line) + warnings).joined(separator: "\n")
    }

    private static func line(_ item: JSONValue) -> String {
        if item["kind"] == .string("exchange") { return exchange(item) }
        if item["kind"] == .string("frame") { return frame(item) }
        // A connected client has lists of its own.
        guard let object = item.object, item["operations"] == nil else { return indented(item) }
        return object.members.map { "\($0.name)=\(plain($0.value))" }.joined(separator: "  ")
    }

    private static func exchange(_ item: JSONValue) -> String {
        let status = item["status"]?.integer.map { String($0) } ?? "---"
        let target = (item["path"]?.string ?? "") + (item["query"]?.string.map { "?" + $0 } ?? "")
        var text =
            "#\(plain(item["number"])) \(item["at"]?.string ?? "") \(status) \(item["method"]?.string ?? "") \(target)"
        text += "  \(plain(item["bytesSent"])) B  \(item["device"]?.string ?? "")"
        if let outcome = item["outcome"]?.string, outcome != "complete" {
            text += "  [\(outcome)\(item["carriedOut"] == nil ? "" : ", carried out")]"
        }
        for fault in item["faults"]?.array ?? [] { text += "  ⚡\(plain(fault["fault"]))" }
        if let reason = proxyFailure(item) { text += "\n    \(reason)" }
        for verdict in item["verdicts"]?.array ?? [] { text += "\n    " + self.verdict(verdict) }
        return text
    }

    /// Why the proxy has answered instead of its server (RFC 9209); nil if it has not.
    private static func proxyFailure(_ item: JSONValue) -> Substring? {
        let field = item["replyFields"]?.array?.first { $0["name"]?.string?.lowercased() == "proxy-status" }
        let parts = field?["value"]?.string?.split(separator: "\"") ?? []
        return parts.count == 2 && parts[0] == "larder; details=" ? parts[1] : nil
    }

    /// What a perfect cache would have done, with what it would have spared.
    private static func verdict(_ verdict: JSONValue) -> String {
        var text = plain(verdict["text"])
        let wasted = verdict["wastedSeconds"]
        let seconds: Double
        if case .number(let value)? = wasted { seconds = value } else { seconds = Double(wasted?.integer ?? 0) }
        let milliseconds = (seconds * 1_000).rounded()
        let spared = [
            verdict["wastedBytes"].map { "\(plain($0)) B" }, milliseconds > 0 ? "\(Int(milliseconds)) ms" : nil,
        ].compactMap { $0 }
        if !spared.isEmpty { text += " (wasted: \(spared.joined(separator: ", ")))" }
        return text
    }

    private static func frame(_ item: JSONValue) -> String {
        var text = "#\(plain(item["number"])) \(item["at"]?.string ?? "") \(plain(item["channel"])) "
        text += "\(plain(item["direction"]))  \(plain(item["bytes"])) B  \(plain(item["device"]))"
        if let injectedFault = item["injectedFault"]?.string { text += "  [\(injectedFault)]" }
        return text
    }

    private static func plain(_ value: JSONValue?) -> String { value?.text ?? "" }

    private static func indented(_ value: JSONValue, _ depth: Int = 0) -> String {
        let pad = String(repeating: "  ", count: depth)
        switch value {
        case .object(let object) where !object.members.isEmpty:
            let lines = object.members.map { "\(pad)  \($0.name): \(indented($0.value, depth + 1).drop { $0 == " " })" }
            return (depth == 0 ? "" : "\n") + lines.joined(separator: "\n")
        case .array(let array) where array.contains { $0.object != nil }:
            return "\n"
                + array.map { "\(pad)  - \(indented($0, depth + 1).drop { $0 == " " || $0.isNewline })" }.joined(
                    separator: "\n"
                )
        // The errors of a file are lines.
        default: return plain(value).replacing("\n", with: "\n\(pad)")
        }
    }
}
