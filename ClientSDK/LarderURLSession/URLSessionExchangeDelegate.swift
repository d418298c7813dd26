import Foundation
import LarderHTTP
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The session's delegate, which forwards events to exchanges. A session retains its delegate, so it must not retain
/// the transport.
final class URLSessionExchangeDelegate: NSObject, URLSessionDataDelegate {
    /// Keyed by task, because task identifiers are unique only within a session.
    private let exchanges = Mutex<[ObjectIdentifier: URLSessionExchange]>([:])

    /// The number of exchanges in flight.
    var count: Int { exchanges.withLock { $0.count } }

    func start(_ exchange: URLSessionExchange) {
        exchanges.withLock { $0[ObjectIdentifier(exchange.task)] = exchange }
        exchange.task.resume()
    }

    private func exchange(of task: URLSessionTask) -> URLSessionExchange? {
        exchanges.withLock { $0[ObjectIdentifier(task)] }
    }

    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        guard let exchange = exchange(of: dataTask), let http = response as? HTTPURLResponse else {
            return completionHandler(.cancel)
        }
        exchange.responded((Status(code: http.statusCode), Self.fields(of: http)))
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchange(of: dataTask)?.received(Array(data))
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        exchange(of: task)?.sent(Int(clamping: totalBytesSent))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let exchange = exchanges.withLock { $0.removeValue(forKey: ObjectIdentifier(task)) }
        exchange?.completed(error)
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping (URLRequest?) -> Void
    ) {
        // The redirect is the response: `Redirection` follows it.
        completionHandler(nil)
    }

    static func fields(of response: HTTPURLResponse) -> Fields {
        var fields = Fields()
        let all = response.allHeaderFields.map { (name: "\($0.key)", value: "\($0.value)") }
        for (name, value) in all.sorted(by: { $0.name < $1.name }) {
            guard let name = FieldName(name) else { continue }
            fields.add(name, value)
        }
        return fields
    }
}
