import Foundation
import LarderHTTP
import LarderTransport
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One task of a session, between the delegate and the reader.
final class URLSessionExchange: ReplyExchange {
    let task: URLSessionDataTask
    let inbox: ReplyInbox
    /// Whether a server has received the request: true after a redirect.
    private let hasLeft = Mutex(false)
    private let target = Mutex<String?>(nil)

    init(_ task: URLSessionDataTask, bodyLimit: Int, bufferMaximum: Int) {
        self.task = task
        #if canImport(FoundationNetworking)
            let canPause = false
        #else
            let canPause = true
        #endif
        inbox = ReplyInbox(bodyLimit: bodyLimit, bufferMaximum: bufferMaximum, canPause: canPause)
    }

    func resumeReading() { task.resume() }

    func stop() { task.cancel() }

    // MARK: The session

    func responded(_ head: (Status, Fields)) { inbox.responded(head) }

    func received(_ bytes: [UInt8]) {
        switch inbox.received(bytes) {
        case .more: return
        case .pause: task.suspend()
        case .stop(let error): abandon(error)
        }
    }

    /// The URL of the last redirect; nil without one.
    var redirectedTo: String? { target.withLock { $0 } }

    /// - Parameter url: the target of the redirect if it is followed.
    func redirected(to url: String?) {
        hasLeft.withLock { $0 = true }
        target.withLock { $0 = url }
    }

    func completed(_ error: (any Error)?) {
        guard let error else {
            let none = TransportError(.interrupted, "The reply has no head.")
            inbox.finish(inbox.hasHead ? .success(()) : .failure(none))
            return
        }
        let hasLeft = hasLeft.withLock { $0 } || inbox.hasHead
        inbox.finish(.failure(URLSessionFailure.error(error, requestHasLeft: hasLeft)))
    }
}
