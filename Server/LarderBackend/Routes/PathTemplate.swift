import LarderHTTP

/// A path with parameters, such as `/users/{id}` and `/files/{name}.json`. `*` as the last segment is the rest of the path.
package struct PathTemplate: Sendable {
    private struct Segment: Sendable {
        var before: String
        /// Nil for a literal segment.
        var parameter: String?
        var after = ""
    }

    private var segments: [Segment] = []
    private var hasRest = false

    /// Nil if the path does not begin with `/`, a segment has more than one parameter, or two parameters have one name.
    package init?(_ text: String) {
        guard text.hasPrefix("/"), !text.contains(where: { "?#".contains($0) }) else { return nil }
        var parts = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        if parts.last == "*" { (hasRest, parts) = (true, parts.dropLast()) }
        for part in parts {
            // The text before a parameter, and its name with the text after it.
            let pieces = part.split(separator: "{", omittingEmptySubsequences: false).map { String($0) }
            let inner = (pieces.count == 2 ? pieces[1] : "x}").split(separator: "}", omittingEmptySubsequences: false)
            guard pieces.count <= 2, inner.count == 2, !inner[0].isEmpty, !(pieces[0] + inner[1]).contains("*"),
                !pieces[0].contains("}")
            else { return nil }
            var segment = Segment(before: pieces[0])
            if pieces.count == 2 { (segment.parameter, segment.after) = (String(inner[0]), String(inner[1])) }
            segments.append(segment)
        }
        guard Set(names).count == names.count else { return nil }
    }

    package var literalCount: Int { segments.count { $0.parameter == nil } }

    /// The names of its parameters; `*` is the rest.
    package var names: [String] { segments.compactMap(\.parameter) + (hasRest ? ["*"] : []) }

    /// The values of the parameters, in the order of `names`; nil if the path is another one.
    ///
    /// - Parameter path: the segments of a request, decoded.
    package func values(_ path: [String]) -> [String]? {
        guard hasRest ? path.count > segments.count : path.count == segments.count else { return nil }
        var values: [String] = []
        for (segment, text) in zip(segments, path) {
            guard segment.parameter != nil else {
                if text != segment.before { return nil }
                continue
            }
            guard text.utf8.count > segment.before.utf8.count + segment.after.utf8.count,
                text.hasPrefix(segment.before), text.hasSuffix(segment.after)
            else { return nil }
            values.append(String(text.dropFirst(segment.before.count).dropLast(segment.after.count)))
        }
        if hasRest { values.append(path[segments.count...].joined(separator: "/")) }
        return values
    }

    /// The decoded segments of a request's path; nil for a malformed one.
    package static func segments(_ path: ArraySlice<UInt8>) -> [String]? {
        guard path.first == UInt8(ascii: "/") else { return nil }
        let parts = path.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let segments = parts.compactMap { QueryString.percentDecoded(Array($0)) }
        return segments.count == parts.count ? segments : nil
    }
}
