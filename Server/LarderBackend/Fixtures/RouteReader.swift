import LarderCoding
import LarderEngine
import LarderHTTP

/// Reads custom routes from a file, or from the files `*.json` of a directory in the order of their names.
package struct RouteReader {
    package static let repliesMaximum = 100
    private static let bytesMaximum = 16 << 20

    package private(set) var routes: [Route] = []
    /// The directories of all files that were read, or that are missing.
    package private(set) var directories: Set<String> = []
    private let source: String
    /// That of the route that is being read.
    private var path: PathTemplate?
    private var folder = ""
    /// How many routes have a name.
    private var counts: [String: Int] = [:]

    package init(_ path: String) {
        source = path
        folder = SourceFile.folder(of: path)
        directories = [folder]
    }

    /// - Throws: all errors of all files, with the file, the line and the member.
    package mutating func read() throws(FileError) {
        let isDirectory = SourceFile.isDirectory(source)
        let files = isDirectory ? try SourceFile.names(in: source).map { source + "/" + $0 } : [source]
        guard !files.isEmpty else { throw FileError("\(source): has no file *.json with routes") }
        var errors: [FileError] = []
        for file in files { do { try read(file) } catch { errors.append(error) } }
        guard errors.isEmpty else { throw FileError(errors) }
    }

    private mutating func read(_ file: String) throws(FileError) {
        let bytes = try Self.contents(file)
        guard let object = try SourceFile.json(bytes, named: file).object else {
            throw FileError(file, bytes, at: "", "must be an object with `routes`, such as {\"routes\": []}")
        }
        let top = BodyReader(object)
        if !top.has("routes") { top.failMissing("routes", "must be an array of routes") }
        for reader in top.objects("routes") ?? [] {
            if let route = route(reader) { routes.append(route) }
        }
        top.finish()
        guard top.errors.all.isEmpty else { throw FileError(file, bytes, top.errors.all) }
    }

    private static func contents(_ path: String) throws(FileError) -> [UInt8] {
        let bytes = try SourceFile.bytes(path)
        guard bytes.count <= bytesMaximum else { throw FileError("\(path): is too large; a file may have 16 MiB") }
        return bytes
    }

    // MARK: Routes

    /// Whether a route can have the method; `*` is all of them.
    package static func isMethod(_ text: String) -> Bool {
        text == "*" || (1...32).contains(text.count) && text.allSatisfy { ("A"..."Z").contains($0) }
    }

    /// Why a route cannot have the path, as the rest of a sentence; nil if it can.
    package static func fault(ofPath text: String) -> String? {
        if text.hasPrefix("/_larder") { return "must not begin with /_larder, where the control plane is" }
        for segment in text.split(separator: "/") where segment.hasPrefix(":") {
            let name = segment.dropFirst().prefix { $0.isLetter || $0.isNumber || $0 == "_" }
            if !name.isEmpty { return "has ':\(name)'; write {\(name)} for a parameter" }
        }
        guard PathTemplate(text) == nil else { return nil }
        return "must begin with /, with one parameter such as {id} in a segment, and * only at the end"
    }

    private mutating func route(_ reader: BodyReader) -> Route? {
        let method = reader.string("method", length: 1...32) ?? "GET"
        if !Self.isMethod(method) {
            reader.fail("method", "must be a method in capitals, such as \"POST\", or \"*\"")
        }
        let text = reader.string("path") ?? ""
        path = PathTemplate(text)
        if text.isEmpty {
            reader.failMissing("path", "must be a path such as \"/users/{id}\"")
        } else if let fault = Self.fault(ofPath: text) {
            reader.fail("path", fault)
        }
        let order = reader.choice("order", CustomRoute.Order.self) ?? .first
        let conditions = conditions(reader)
        var replies: [CustomReply] = []
        if let children = reader.objects("replies", count: 1...Self.repliesMaximum) {
            for child in children {
                var reply = reply(child)
                reply.conditions = self.conditions(child)
                replies.append(reply)
            }
        } else {
            replies = [reply(reader)]
        }
        guard let path else { return nil }
        let name = "\(method) \(text)"
        let number = counts[name, default: 0] + 1
        counts[name] = number
        let route = CustomRoute(
            name: name,
            orderName: "order \(name)\(number > 1 ? " \(number)" : "")",
            parameters: path.names,
            conditions: conditions,
            replies: replies,
            order: order
        )
        // Credentials are those of the user's own API.
        return Route(method == "*" ? nil : Method(method), text, .ignored) { call throws(Problem) in
            try call.answer(route)
        }
    }

    private func conditions(_ reader: BodyReader) -> [RouteCondition] {
        guard let child = reader.child("when") else { return [] }
        return child.members.compactMap { member in
            guard let subject = RouteSubject(member.name) else {
                child.fail(member.name, "must be query.NAME, field.NAME, path.NAME, state.NAME, body or body.PATH")
                return nil
            }
            if case .path(let name) = subject, let known = path?.names, !known.contains(name) {
                child.fail(member.name, "must name a parameter of the path")
            }
            return test(member, in: child).map { RouteCondition(subject: subject, test: $0) }
        }
    }

    private func test(_ member: JSONObject.Member, in outer: BodyReader) -> RouteCondition.Test? {
        guard member.value.object != nil, let reader = outer.child(member.name) else {
            return member.value == .null ? .exists(false) : .equals(member.value)
        }
        if let text = reader.string("matches", length: 0...2_048) {
            return reader.made("matches") { .matches(try TextPattern(text)) }
        }
        if reader.has("exists") { return .exists(reader.bool("exists")) }
        if let value = reader.value("equals") { return .equals(value) }
        outer.fail(member.name, "must be a value, or an object with `equals`, `matches` or `exists`")
        return nil
    }

    private mutating func reply(_ reader: BodyReader) -> CustomReply {
        var reply = CustomReply()
        reply.weight = reader.integer("weight", in: 1...1_000_000) ?? 1
        if let target = reader.string("redirect") {
            reply.status = Status(code: 302)
            if let template = reader.made("redirect", { try RouteTemplate(target, in: path) }) {
                reply.fields.append((.location, template))
            }
        }
        reply.status = reader.integer("status", in: 200...599).map { Status(code: $0) } ?? reply.status
        reply.fields += fields(reader)
        reply.mediaType = reader.string("mediaType", length: 3...200)
        reply.body = body(reader, &reply.mediaType) ?? (reply.status.code < 400 ? .none : .problem(nil))
        reply.states = states(reader)
        reply.delay = delay(reader)
        for child in reader.objects("webhooks", count: 0...8) ?? [] {
            if let webhook = webhook(child) { reply.webhooks.append(webhook) }
        }
        return reply
    }

    private mutating func body(_ reader: BodyReader, _ mediaType: inout String?) -> CustomReply.Body? {
        let given = ["json", "text", "file", "base64", "problem"].filter { reader.object[$0] != nil }
        if given.count > 1 { reader.fail(given[1], "cannot be given together with `\(given[0])`") }
        // `null` is a document, too.
        _ = reader.value("json")
        if let value = reader.object["json"] { return reader.made("json") { .json(try JSONTemplate(value, in: path)) } }
        if let text = reader.string("text", length: 0...Self.bytesMaximum) {
            return reader.made("text") { .text(try RouteTemplate(text, in: path)) }
        }
        if let text = reader.string("base64", length: 0...Self.bytesMaximum) {
            if let bytes = Base64.decode(text) { return .bytes(bytes) }
            reader.fail("base64", "must be Base64 of one line, with padding")
            return nil
        }
        if let text = reader.string("problem") {
            return reader.made("problem") { .problem(try RouteTemplate(text, in: path)) }
        }
        let isTemplate = reader.bool("template")
        guard let name = reader.string("file") else {
            if isTemplate { reader.fail("template", "says that a `file` is a template; other bodies always are") }
            return nil
        }
        let file = name.hasPrefix("/") ? name : folder + "/" + name
        directories.insert(SourceFile.folder(of: file))
        if mediaType == nil { mediaType = Self.mediaType(of: name) }
        return reader.made("file") {
            let bytes = try Self.contents(file)
            return isTemplate
                ? .text(try RouteTemplate(String(decoding: bytes, as: UTF8.self), in: path)) : .bytes(bytes)
        }
    }

    private func fields(_ reader: BodyReader) -> [(name: FieldName, value: RouteTemplate)] {
        templates("fields", reader).compactMap { field in
            guard let name = FieldName(field.name), !Self.ownFields.contains(name) else {
                let detail = "is not a field that a route can set; the server writes framing and dates itself"
                reader.errors.add(reader.path("fields") + "/" + JSONPointer.escape(field.name), detail)
                return nil
            }
            if name == .etag, let text = field.value.literal, EntityTag(parsing: text) == nil {
                reader.errors.add(reader.path("fields") + "/ETag", "must be in quotes, such as \"\\\"v1\\\"\"")
            }
            return (name, field.value)
        }
    }

    private static let ownFields: Set<FieldName> = [
        .contentLength, .transferEncoding, .connection, .date, .keepAlive, .upgrade, .contentEncoding,
    ]

    /// The members of an object as templates; an array has several values for one name.
    private func templates(_ name: String, _ reader: BodyReader) -> [(name: String, value: RouteTemplate)] {
        guard let child = reader.child(name) else { return [] }
        return child.members.flatMap { member in
            (member.value.array ?? [member.value]).compactMap { value in
                guard let text = value.string else {
                    child.fail(member.name, "must be a string")
                    return nil
                }
                return child.made(member.name) { (member.name, try RouteTemplate(text, in: path)) }
            }
        }
    }

    private func states(_ reader: BodyReader) -> [(name: String, value: RouteTemplate?)] {
        guard let child = reader.child("set") else { return [] }
        return child.members.compactMap { member -> (name: String, value: RouteTemplate?)? in
            if member.value == .null { return (member.name, nil) }
            guard let text = member.value.string else {
                child.fail(member.name, "must be a string, or null to remove the state")
                return nil
            }
            return child.made(member.name) { try RouteTemplate(text, in: path) }.map { (member.name, $0) }
        }
    }

    private func delay(_ reader: BodyReader) -> ClosedRange<Double>? {
        guard let value = reader.value("delaySeconds") else { return nil }
        let bounds = (value.array ?? [value]).compactMap(\.double)
        guard let low = bounds.first, let high = bounds.last, (1...2).contains(bounds.count), 0 <= low, low <= high,
            high <= 3_600
        else {
            reader.fail("delaySeconds", "must be a number of seconds up to 3600, or two of them, such as [0.1, 0.5]")
            return nil
        }
        return low...high
    }

    private mutating func webhook(_ reader: BodyReader) -> CustomReply.Webhook? {
        let method = Method(reader.string("method", length: 1...32) ?? "POST")
        let fields = fields(reader)
        var mediaType: String?
        let body = body(reader, &mediaType) ?? .none
        let delay = reader.seconds("delaySeconds", maximum: 3_600) ?? .zero
        let text = reader.string("url") ?? ""
        guard !text.contains("{{") else {
            reader.fail("url", "cannot have templates; fields and bodies can")
            return nil
        }
        guard let url = HTTPURL(text), url.scheme == .http, Authority.isLoopback(url.authority) else {
            reader.fail("url", "must be an http URL of this machine, such as \"http://127.0.0.1:9000/hook\"")
            return nil
        }
        return reader.made("url") {
            let address = try UpstreamAddress(host: url.host, port: url.port)
            return .init(url: url, address: address, method: method, fields: fields, body: body, delay: delay)
        }
    }

    private static let mediaTypes = [
        "json": "application/json", "html": "text/html", "txt": "text/plain", "md": "text/plain", "css": "text/css",
        "js": "text/javascript", "csv": "text/csv", "xml": "application/xml", "svg": "image/svg+xml",
        "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
        "pdf": "application/pdf", "mp4": "video/mp4", "mp3": "audio/mpeg",
    ]

    private static func mediaType(of name: String) -> String {
        let type = mediaTypes[name.split(separator: ".").last?.lowercased() ?? ""] ?? "application/octet-stream"
        return type.hasPrefix("text/") ? type + "; charset=utf-8" : type
    }
}
