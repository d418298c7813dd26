import Foundation
import LarderHTTP

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The transport over Foundation's `URLSession`, with its own caching, cookies and credentials turned off.
public final class URLSessionTransport: Transport {
    private let session: URLSession

    /// - Parameter timeout: how long a reply may take.
    public init(timeout: Duration = .seconds(30)) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        configuration.timeoutIntervalForRequest = Double(timeout.components.seconds)
        session = URLSession(configuration: configuration)
    }

    deinit { session.invalidateAndCancel() }

    /// Sends a request.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        guard let url = URL(string: request.url), url.scheme != nil else {
            throw TransportError(.invalidURL, "«\(request.url)» is not a URL.")
        }
        var foreign = URLRequest(url: url)
        foreign.httpMethod = request.method.rawValue
        for field in request.fields { foreign.addValue(field.value, forHTTPHeaderField: field.name.description) }
        if !request.body.isEmpty { foreign.httpBody = Data(request.body) }
        do {
            let (data, response) = try await session.data(for: foreign)
            guard let http = response as? HTTPURLResponse else {
                throw TransportError(.invalidURL, "\(request.url) is not reached by HTTP.")
            }
            var fields = Fields()
            for (name, value) in http.allHeaderFields {
                guard let name = FieldName("\(name)") else { continue }
                fields.add(name, "\(value)")
            }
            return TransportResponse(status: Status(code: http.statusCode), fields: fields, body: Array(data))
        } catch let error as TransportError {
            throw error
        } catch {
            throw Self.error(error)
        }
    }

    private static func error(_ error: any Error) -> TransportError {
        if error is CancellationError { return TransportError(.cancelled, "The request was cancelled.") }
        guard let error = error as? URLError else { return TransportError(.interrupted, "\(error)") }
        let code: TransportError.Code =
            switch error.code {
            case .cancelled: .cancelled
            case .timedOut: .timedOut
            case .cannotConnectToHost, .cannotFindHost, .dnsLookupFailed, .notConnectedToInternet: .unreachable
            case .badURL, .unsupportedURL: .invalidURL
            default: .interrupted
            }
        return TransportError(code, error.localizedDescription)
    }
}
