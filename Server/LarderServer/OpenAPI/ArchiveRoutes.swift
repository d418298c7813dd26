import LarderBackend
import LarderCoding
import LarderHTTP

/// Routes from the replies of an HTTP archive. Several replies to one request are a sequence; requests with different bodies are different ones.
struct ArchiveRoutes {
    private struct Recorded {
        /// `method` and `path`.
        let members: [(String, JSONValue?)]
        /// Those on the query, and on the body if other requests for the same target have another one.
        var conditions: JSONObject
        /// As conditions on it see it; nil for bytes that are no text.
        let body: JSONValue?
        var replies: [[(String, JSONValue?)]] = []

        /// What requests with different bodies have in common.
        var line: [UInt8] { JSONValue.members(members + [("when", .object(conditions))]).encoded }
    }

    private var requests: [Recorded] = []
    private var omissions: [(reason: String, example: String, count: Int)] = []
    /// Scheme, host and port of the servers that were asked.
    private let origins: Set<String>

    /// - Throws: `FileError` for damaged Base64.
    init(_ entries: [JSONValue], named name: String) throws(FileError) {
        let urls = entries.map { $0.value(at: "/request/url")?.string.flatMap { HTTPURL($0) } }
        origins = Set(urls.compactMap { $0.map(Self.origin) })
        var indices: [[UInt8]: Int] = [:]
        for (index, (entry, url)) in zip(entries, urls).enumerated() {
            let method = entry.value(at: "/request/method")?.string ?? ""
            let text = url?.path ?? entry.value(at: "/request/url")?.string ?? ""
            let example = "\(method.prefix(32)) \(text.prefix(100))"
            guard let url else {
                omit("requests without an http or https URL", example)
                continue
            }
            let found: Recorded?
            do { found = try request(entry, method, url, example) } catch {
                throw FileError("\(name): /log/entries/\(index)/request/postData: \(error)")
            }
            guard let request = found else { continue }
            let key = request.line + (request.body?.sorted.encoded ?? [])
            let place = indices[key, default: requests.count]
            if indices.updateValue(place, forKey: key) == nil { requests.append(request) }
            guard requests[place].replies.count < RouteReader.repliesMaximum else {
                omit("replies after \(RouteReader.repliesMaximum) to one request", example)
                continue
            }
            do {
                let reply = try reply(entry, method, url, example)
                requests[place].replies.append(reply)
            } catch {
                throw FileError("\(name): /log/entries/\(index)/response/content: \(error)")
            }
        }
        let groups = Dictionary(grouping: requests.indices) { requests[$0].line }.values.filter { $0.count > 1 }
        for group in groups.sorted(by: { $0[0] < $1[0] }) { tellApart(group) }
    }

    /// Adds conditions on the bodies of requests that are equal otherwise.
    private mutating func tellApart(_ group: [Int]) {
        let bodies = group.compactMap { requests[$0].body }
        let objects = bodies.compactMap(\.object)
        let names = Set(objects.flatMap { $0.members.map(\.name) }).sorted()
        let differing = names.filter { name in Set(objects.map { $0[name]?.sorted }).count > 1 }
        // A name that is no path of its own, and null, can be compared with the whole body only.
        let hasPlainNames = differing.allSatisfy { !$0.isEmpty && !$0.contains { ".[]*$".contains($0) } }
        let hasNull = objects.contains { object in differing.contains { object[$0] == .null } }
        let comparesMembers = objects.count == group.count && hasPlainNames && !hasNull
        for index in group {
            guard let body = requests[index].body else {
                let text = requests[index].members.compactMap { $0.1?.string }.joined(separator: " ")
                omit("conditions on a body that is no text", text)
                continue
            }
            if comparesMembers {
                for name in differing { requests[index].conditions["body." + name] = Self.condition(body[name]) }
            } else {
                requests[index].conditions["body"] = Self.condition(body)
            }
        }
    }

    /// The condition that a part of a body has a value; for nil that there is no such part.
    private static func condition(_ value: JSONValue?) -> JSONValue {
        switch value {
        case nil: .null
        case .object?, .array?: .members(["equals": value])
        case let value?: value
        }
    }

    /// The body of a request as a route sees it: JSON, a form as an object, or text; nil for other bytes.
    private static func body(_ entry: JSONValue) throws(FileError) -> JSONValue? {
        let data = entry.value(at: "/request/postData")
        let bytes = try HAR.bytes(of: data) ?? []
        let value = RouteBody.value(of: bytes, data?["mimeType"]?.string)
        return value == .null ? String(validating: bytes, as: UTF8.self).map { .string($0) } : value
    }

    /// The reasons for what is in no route, each with the number of entries and the first one; nil if nothing is left out.
    var omitted: String? {
        let reasons = omissions.map { reason, example, count in "\(reason) (\(count), first \(example))" }
        return reasons.isEmpty ? nil : reasons.joined(separator: "; ")
    }

    /// Routes with more conditions are asked first: without a query a route takes every request for its path. Of equally many
    /// conditions the earlier one comes first.
    var routes: [JSONValue] {
        requests.sorted { $0.conditions.members.count > $1.conditions.members.count }.map { request in
            var replies = request.replies.map { JSONValue.members($0) }
            // The last one is repeated.
            while replies.count > 1, replies[replies.count - 1] == replies[replies.count - 2] { replies.removeLast() }
            let rest: [(String, JSONValue?)] =
                replies.count == 1
                ? request.replies[0] : [("order", .string("sequence")), ("replies", .array(replies))]
            let when = request.conditions
            return .members(request.members + [("when", when.members.isEmpty ? nil : .object(when))] + rest)
        }
    }

    private mutating func omit(_ reason: String, _ example: String) {
        let index = omissions.firstIndex { $0.reason == reason }
        if let index { omissions[index].count += 1 } else { omissions.append((reason, example, 1)) }
    }

    /// The request of an entry; nil if no route can answer it, or there is no reply.
    private mutating func request(_ entry: JSONValue, _ method: String, _ url: HTTPURL, _ example: String)
        throws(FileError) -> Recorded?
    {
        let status = entry.value(at: "/response/status")?.integer ?? 0
        let query = QueryString(parsing: Array((url.query ?? "").utf8))
        var reason = method == "OPTIONS" ? "OPTIONS, which the server answers" : nil
        if !(200...599).contains(status) || status == 304 { reason = "replies with status \(status)" }
        guard reason == nil, RouteReader.isMethod(method), let path = Self.literal(path: url.path), let query else {
            omit(reason ?? "requests that no route can express", example)
            return nil
        }
        var when = JSONObject()
        for item in query.items.sorted(by: { $0.name < $1.name }) where !item.name.isEmpty {
            when["query." + item.name] = .string(item.value)
        }
        return Recorded(
            members: [("method", .string(method)), ("path", .string(path))],
            conditions: when,
            body: try Self.body(entry)
        )
    }

    private mutating func reply(_ entry: JSONValue, _ method: String, _ url: HTTPURL, _ example: String)
        throws(FileError) -> [(String, JSONValue?)]
    {
        let status = entry.value(at: "/response/status")
        var reply: [(String, JSONValue?)] = [("status", status)]
        let fields = entry.value(at: "/response/headers")?.array ?? []
        if let location = fields.first(where: { $0["name"]?.string?.lowercased() == "location" })?["value"]?.string {
            let value = Self.literal(.string(relative(location, to: url)))
            reply.append(("fields", .members(["Location": value])))
        }
        let content = entry.value(at: "/response/content")
        let bytes = content?["_isCoded"] == nil ? try HAR.bytes(of: content) : nil
        if bytes == nil, method != "HEAD", status != .integer(204), content?["size"]?.integer ?? 0 > 0 {
            omit("bodies that are missing or not decoded", example)
        }
        guard let bytes, !bytes.isEmpty else { return reply }
        let type = content?["mimeType"]?.string.flatMap {
            $0.contains("/") && (3...200).contains($0.unicodeScalars.count) ? $0 : nil
        }
        return reply + body(bytes, type, example)
    }

    /// The members for a body: as JSON or as text if it is, else as Base64.
    private mutating func body(_ bytes: [UInt8], _ type: String?, _ example: String) -> [(String, JSONValue?)] {
        if let type, type.contains("json") {
            do {
                let json = ("json", Self.literal(try JSONParser.parse(bytes)) as JSONValue?)
                return type.hasPrefix("application/json") ? [json] : [("mediaType", .string(type)), json]
            } catch {
                omit("invalid JSON, which stays as it is", example)
            }
        }
        let text = String(validating: bytes, as: UTF8.self).map { Self.literal(.string($0)) }
        let body = text.map { ("text", $0) } ?? ("base64", .string(Base64.encode(bytes)))
        return [("mediaType", type.map { .string($0) }), body]
    }

    /// A `Location` without the server if that was asked, so that a client which follows it stays with the routes.
    private func relative(_ location: String, to url: HTTPURL) -> String {
        // Another server with the same path, such as that of https, would redirect to itself.
        guard let target = url.resolve(location), origins.contains(Self.origin(target)), target.target != url.target
        else { return location }
        return target.target + location.drop { $0 != "#" }
    }

    private static func origin(_ url: HTTPURL) -> String { "\(url.scheme)://\(url.authority)" }

    /// A path as a template that is this path alone; nil if there is none.
    private static func literal(path: String) -> String? {
        guard let segments = PathTemplate.segments(Array(path.utf8)[...]),
            !segments.contains(where: { $0.contains { "/{}*?#".contains($0) } })
        else { return nil }
        let path = "/" + segments.joined(separator: "/")
        return RouteReader.fault(ofPath: path) == nil ? path : nil
    }

    /// A value as a template whose texts are these texts.
    private static func literal(_ value: JSONValue) -> JSONValue {
        switch value {
        case .string(let string): .string(string.replacing("{{", with: "{{pick \"{{\"}}"))
        case .array(let values): .array(values.map(literal))
        case .object(let object): .members(object.members.map { ($0.name, literal($0.value)) })
        default: value
        }
    }
}
