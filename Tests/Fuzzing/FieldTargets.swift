import LarderCoding
import LarderHTTP
import LarderHTTPWire
import LarderTime

@testable import LarderBackend
@testable import LarderHTTPCache
@testable import LarderServer
@testable import LarderTransport

/// URLs and references, queries, links and path patterns.
func fuzzURL(_ bytes: [UInt8]) {
    let text = text(bytes)
    let lines = text.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    if let url = HTTPURL(lines[0], schemes: [.http, .https, .ws, .wss]) {
        requireEqual(HTTPURL(url.text, schemes: [.http, .https, .ws, .wss]), url, "The normal form is another URL.")
        require((1...65_535).contains(url.port) && url.path.hasPrefix("/"), "Port or path of \(url).")
        _ = (url.isEncoded, url.host)
        let redacted = HTTPURL.redacted(url.text)
        if let userInfo = url.userInfo, userInfo.utf8.count > 8, !url.target.contains(userInfo),
            !url.host.contains(userInfo)
        {
            require(!redacted.contains(userInfo), "User information is not removed from \(redacted).")
        }
        if lines.count > 1, let next = url.resolve(lines[1]) {
            requireEqual(
                HTTPURL(next.text, schemes: [.http, .https, .ws, .wss]),
                next,
                "A resolved URL is not normal."
            )
        }
    }
    _ = HTTPURL.redacted(text)
    for plus in [false, true] { _ = QueryString.percentDecoded(bytes, plusIsSpace: plus) }
    if let query = QueryString(parsing: bytes) { _ = query.first("limit") }
    for link in WebLink.parse(lines) { _ = link.relates(as: "next") }
    if let pattern = PathPattern(lines[0]) {
        _ = pattern.matches(Array((lines.count > 1 ? lines[1] : "/v1/feed").utf8)[...])
        if !lines[0].contains("*") {
            require(pattern.matches(Array(lines[0].utf8)[...]), "'\(lines[0])' does not match itself.")
        }
    }
    _ = Authority.isValid(bytes[...])
}

/// Header fields, one each line: every rule that a cache, a client or the server applies to them.
func fuzzFields(_ bytes: [UInt8]) {
    var fields = Fields()
    for line in text(bytes).split(separator: "\n") {
        let sides = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        if sides.count == 2, let name = FieldName(String(sides[0])) { fields.add(name, FieldList.trimmed(sides[1])) }
    }
    let now = WallTime(seconds: 1_790_000_000)
    let control = CacheControl(response: fields)
    for seconds in [control.maxAge, control.staleIfError, control.staleWhileRevalidate, control.minFresh] {
        require((0...DeltaSeconds.maximum).contains(seconds ?? 0), "A directive has \(seconds ?? 0) seconds.")
    }
    _ = (CacheControl(request: fields).maxStale, control.noCache, control.privateScope, control.mustUnderstand)
    require((0...DeltaSeconds.maximum).contains(Age.seconds(in: fields)), "The age is \(Age.seconds(in: fields)).")
    for status in [200, 206, 301, 304, 404, 500] {
        for sent in [now, now + .seconds(-100), WallTime(nanosecondsSinceEpoch: .min)] {
            let terms = ResponseTerms(status: Status(code: status), fields: fields, requestedAt: sent, receivedAt: now)
            require(terms.lifetime >= .zero && terms.age >= .zero, "Lifetime or age of \(terms).")
            require(
                !(CacheControl(response: fields).noStore && !control.mustUnderstand && terms.mayStore),
                "no-store is stored."
            )
        }
    }
    if let wait = RetryAfterField.wait(fields, now: now) { require(wait >= .zero, "Retry-After is \(wait).") }
    for name in [FieldName.accept, "accept-encoding", "accept-language", "prefer", "if-none-match"] {
        _ = Vary.normalized(name, in: fields)
    }
    _ = (Vary(fields), Negotiation.prefers("de-CH", in: fields))
    let conditions = Preconditions(
        ifMatch: fields.combined("if-match"),
        ifNoneMatch: fields.combined("if-none-match"),
        ifModifiedSince: fields["if-modified-since"],
        ifUnmodifiedSince: fields["if-unmodified-since"]
    )
    _ = conditions.evaluate(method: .get, exists: true, entityTag: nil, lastModified: now, now: now)
    for field in fields {
        let value = field.value
        if let tag = EntityTag(parsing: value) {
            requireEqual(EntityTag(parsing: tag.description), tag, "An entity tag changes.")
            _ = tag.coded(by: .gzip)
        }
        _ = (
            EntityTagCondition(parsing: value), StructuredField.string(parsing: value), ContentCoding.negotiated(value)
        )
        for range in ByteRange.parse(value) ?? [] {
            for length in [0, 1, 1_000, Int.max] {
                guard let part = range.resolved(against: length) else { continue }
                require(!part.isEmpty && part.upperBound <= length, "\(range) of \(length) is \(part).")
            }
        }
        if let range = ContentRange(parsing: value) {
            require(range.total.map { range.bytes.upperBound <= $0 } ?? true, "\(range) is beyond its end.")
        }
        _ = (MediaType(parsing: value)?.parameter("charset"), Accept(parsing: value).quality(of: "application/json"))
        requireEqual(
            FieldList.members(of: value).joined(separator: ",").isEmpty,
            FieldList.members(of: value).isEmpty,
            value
        )
        _ = (FieldList.unquoted(value), DeltaSeconds.parse(value))
    }
    for part in WebLink.parse(fields.values(of: "link")) { _ = part.relations }
}

/// Dates of header fields (three forms) and of JSON, and due dates of tasks.
func fuzzDates(_ bytes: [UInt8]) {
    let text = text(bytes)
    for now in [
        WallTime(seconds: 1_790_000_000), WallTime(seconds: -9_000_000_000), WallTime(nanosecondsSinceEpoch: .max),
    ] {
        if let time = HTTPDate.parse(text, now: now) {
            requireEqual(
                HTTPDate.parse(HTTPDate.format(time), now: now)?.seconds,
                time.seconds,
                "A date changes: \(text)"
            )
        }
        _ = RetryAfter.wait(text, from: now)
    }
    if let time = WallTime(rfc3339: text) {
        let again = WallTime(rfc3339: time.rfc3339())
        requireEqual(again?.milliseconds, time.milliseconds, "A timestamp changes: \(text)")
    }
    if let date = TaskDate(parsing: text) {
        requireEqual(date.text, text, "A date changes.")
        _ = date.advanced(byDays: 30).text
    }
    if let range = TaskQuery.dueRange(parsing: text) { require(range.lowerBound <= range.upperBound, "\(range)") }
    if bytes.count >= 8 {
        let number = bytes[..<8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let time = WallTime(nanosecondsSinceEpoch: Int64(bitPattern: number))
        _ = (HTTPDate.format(time), time.rfc3339(), TaskDate(on: time).text)
    }
}

/// Cursors and change tokens: as text, and with a correct checksum after it.
func fuzzTokens(_ bytes: [UInt8]) {
    func check(_ text: String) {
        if let cursor = Cursor(parsing: text) {
            requireEqual(Cursor(parsing: cursor.text), cursor, "A cursor changes.")
        }
        if let token = ChangeToken(parsing: text) {
            requireEqual(ChangeToken(parsing: token.text), token, "A token changes.")
            _ = token.advanced(to: 7).text
        }
    }
    let input = text(bytes)
    check(input)
    let sum = ContentHash.hash64(Array(input.utf8).span) & 0xFFFF
    check("\(input).\(String(sum, radix: 36))")
}
