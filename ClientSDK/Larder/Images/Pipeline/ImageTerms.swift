import LarderHTTP
import LarderTime

/// Until when a picture may be shown without asking.
struct ImageFreshness: Sendable, Hashable {
    /// When it came or was confirmed: a clock that was set back behind that makes nothing fresh.
    let from: WallTime
    let until: WallTime

    func holds(at now: WallTime) -> Bool { now >= from && now < until }
}

/// What may be done with the responses that pictures come in: RFC 9111 as `HTTPCacheDecision` has it. Pure.
struct ImageTerms: Sendable {
    let policy: HTTPCachePolicy
    /// How long a picture is fresh whose server says nothing at all: a heuristic that RFC 9111 §4.2.2 leaves to caches.
    let standardLifetime: Duration

    /// The fields as they count: where nothing gives a lifetime, and nothing allows to guess one, with ours.
    func supplemented(_ fields: Fields, receivedAt: WallTime) -> Fields {
        let date = fields[.date].flatMap { HTTPDate.parse($0, now: receivedAt) } ?? receivedAt
        let (_, source) = HTTPCacheFreshness.lifetime(
            status: .ok,
            fields: fields,
            directives: CacheControl(response: fields),
            date: date,
            receivedAt: receivedAt,
            policy: policy
        )
        guard source == .none, standardLifetime > .zero else { return fields }
        var supplemented = fields
        supplemented.add(.cacheControl, "max-age=\(standardLifetime.components.seconds)")
        return supplemented
    }

    /// The response as it is stored; nil where it may not be.
    func entry(_ request: TransportRequest, _ whole: PartialImage) -> HTTPCacheEntry? {
        let fields = supplemented(whole.fields, receivedAt: whole.receivedAt)
        return HTTPCacheStorageDecision.decide(
            request: request,
            response: TransportResponse(status: .ok, fields: fields, body: whole.bytes),
            requestedAt: whole.requestedAt,
            receivedAt: whole.receivedAt,
            policy: policy
        ).entry
    }

    /// Whether anything of a reply may be written down, as far as its head tells.
    func mayStore(_ request: TransportRequest, _ fields: Fields) -> Bool {
        HTTPCacheStorageDecision.refusal(request, .ok, fields, policy) == nil
    }

    /// For how long its pixels may be shown to those who ask with these fields; nil where every showing needs a decision.
    func freshness(_ entry: HTTPCacheEntry, _ fields: Fields, now: WallTime) -> ImageFreshness? {
        // What the request itself says of caches is judged each time.
        guard !fields.contains(.cacheControl), !fields.contains(.pragma) else { return nil }
        let decision = HTTPCacheDecision.decide(
            method: .get,
            fields: fields,
            entries: [entry],
            now: now,
            policy: policy
        )
        guard decision.action == .serve else { return nil }
        let times = HTTPCacheFreshness(entry, now: now, policy: policy)
        guard let age = times.age else { return nil }
        return ImageFreshness(from: now, until: now + (times.lifetime - age))
    }

    /// Whether what is stored may be shown in place of a failure.
    func mayStandIn(_ entry: HTTPCacheEntry, for error: ImageError, _ fields: Fields, now: WallTime) -> Bool {
        switch error.code {
        case .offline, .interrupted, .damaged:
            // As good as no network (RFC 9111 §4.2.4).
            let decision = HTTPCacheDecision.decide(
                method: .get,
                fields: fields,
                entries: [entry],
                now: now,
                policy: policy,
                isOffline: true
            )
            return decision.entry != nil && decision.action != .unreachable
        case .status where [500, 502, 503, 504].contains(error.status):
            return HTTPCacheDecision.standIn(entry, for: fields, now: now, policy: policy) != nil
        default: return false
        }
    }
}
