import LarderHTTP
import LarderTime
import LarderTransport

/// What a URL leads to.
enum ImageReply: Sendable {
    case picture(LoadedImage)
    case redirect(ImageRedirect)
}

/// A redirect to another URL (RFC 9110 §15.4). It is stored and validated under the URL that redirects, and the picture under its own.
struct ImageRedirect: Sendable {
    let target: ImageSourceKey
    /// The period in which it may be followed without a request; nil if each use needs a decision.
    let freshness: Range<WallTime>?
    /// Whether it may be followed when it is stale and no request may be sent.
    let mayBeStale: Bool
    /// Whether to validate it in the background (RFC 5861 §3).
    let wantsValidation: Bool
}

extension ImageSourceKey {
    /// The file to which a response redirects a request for this one; nil if it is not a redirect that can be followed.
    func redirected(_ status: Status, _ fields: Fields) -> ImageSourceKey? {
        let request = TransportRequest(url: url, fields: self.fields)
        return Redirection.next(after: request, status, fields).map { ImageSourceKey(url: $0.url, fields: $0.fields) }
    }
}

extension ImagePipeline {
    /// Continues a job with the load of the target, which other jobs may share.
    func follow(
        _ redirect: ImageRedirect,
        _ key: ImageJobKey,
        from load: ImageLoadKey,
        _ state: inout ImagePipelineState,
        _ effects: inout [Effect]
    ) {
        guard let job = state.jobs[key] else { return }
        guard job.hops.count < Redirection.maximum else {
            let error = ImageError(
                .interrupted,
                "\(job.request.url) redirects more than \(Redirection.maximum) times."
            )
            return end(key, with: error, &state, &effects)
        }
        let next = ImageLoadKey(source: redirect.target, options: load.options, epoch: load.epoch)
        if let failure = state.remembered(next.source, next.options, now: configuration.uptime.uptime) {
            if job.priority >= .high { effects.append(.refreshLists(at: failure.until)) }
            return end(key, with: failure.error, &state, &effects)
        }
        state.jobs[key]?.hops.append(redirect)
        state.jobs[key]?.phase = .loading(next)
        if attach(key, to: next, &state) { effects.append(.tell(.mergedDownload(url: next.source.url))) }
    }
}
