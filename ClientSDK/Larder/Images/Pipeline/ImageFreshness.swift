import LarderHTTP
import LarderTime

/// How long a file may be shown without asking, by what came with it (RFC 9111 §4.2, the part that pictures use).
struct ImageFreshness: Sendable {
    /// Whether it may be kept at all.
    let isStorable: Bool
    /// For how long it is fresh.
    let lifetime: Duration

    /// - Parameter standard: the lifetime where the server says nothing.
    init(_ fields: Fields, standard: Duration) {
        var isStorable = true
        var lifetime: Duration?
        var mustAsk = false
        for directive in (fields.combined(.cacheControl) ?? "").lowercased().split(separator: ",") {
            let parts = directive.split(separator: "=", maxSplits: 1)
            let name = parts.first?.filter { $0 != " " && $0 != "\t" } ?? ""
            let value = parts.count > 1 ? parts[1].filter(\.isNumber) : ""
            switch name {
            case "no-store": isStorable = false
            case "no-cache": mustAsk = true
            case "max-age": lifetime = .seconds(min(Int64(value) ?? 0, 10 * 365 * 86_400))
            default: continue
            }
        }
        let age = fields[.age].flatMap { Int64($0) } ?? 0
        self.isStorable = isStorable
        self.lifetime = mustAsk ? .zero : max(.zero, (lifetime ?? standard) - .seconds(max(0, min(age, 1 << 40))))
    }
}
