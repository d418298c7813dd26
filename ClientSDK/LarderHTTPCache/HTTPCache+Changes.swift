import LarderEvents
import LarderHTTP
import LarderTime
import LarderTransport

/// Requests that the cache does not answer: unsafe methods, and `GET` with content.
extension HTTPCache {
    /// Sends a request without reading the cache, as `openPast` does, and reads its response.
    func forward(
        _ request: TransportRequest,
        _ explanation: String
    ) async throws(TransportError) -> HTTPCache.Response {
        response(try await openPast(request).whole(), explanation)
    }

    /// Opens a request without reading the cache. An unsafe method invalidates stored responses (RFC 9111 §4.4), also if its outcome is
    /// unknown, but not if the server has rejected it (4xx) and no other copy was lost, or it was never sent.
    func openPast(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        let url = HTTPURL(request.url)
        let lostCopies = LostCopies()
        let result: Result<TransportStream, TransportError> = await LostCopies.$current.withValue(lostCopies) {
            do throws(TransportError) { return .success(try await transport.open(request)) } catch {
                return .failure(error)
            }
        }
        if !lostCopies.isEmpty { LostCopies.current?.note() }
        do throws(TransportError) {
            let stream = try result.get()
            guard let url else { return stream }
            var fields = stream.fields
            configuration.correctFields(&fields, request.url)
            let isRejected = (400..<500).contains(stream.status.code) && lostCopies.isEmpty
            if !isRejected { await noteChange(request.method, url, fields) }
            return Self.rewritten(stream, fields)
        } catch {
            await noteFailedChange(request.method, url, error)
            throw error
        }
    }

    /// Invalidates the URL of a change that was not rejected, and its `Location` and `Content-Location` in the same origin. A 5xx may come
    /// from a gateway that lost the reply to a change.
    private func noteChange(_ method: Method, _ url: HTTPURL, _ fields: Fields) async {
        guard !method.isSafe else { return }
        var targets: Set<HTTPURL> = [url]
        for name in [FieldName.location, .contentLocation] {
            guard let target = fields[name].flatMap({ url.resolve($0) }), target.origin == url.origin else { continue }
            targets.insert(target)
        }
        let changed = targets
        await onDiskThread { for target in changed { self.invalidate(target) } }
    }

    /// Invalidates a URL after a change with an unknown outcome: the server may have received it.
    private func noteFailedChange(_ method: Method, _ url: HTTPURL?, _ error: TransportError) async {
        guard let url, !method.isSafe, error.kind != .unsent, error.code != .invalidURL else { return }
        await onDiskThread { self.invalidate(url) }
    }
}
