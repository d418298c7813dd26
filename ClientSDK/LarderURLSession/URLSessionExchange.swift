import Foundation
import LarderHTTP
import LarderTime
import LarderTransport

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One task of a session, between the delegate and the reader.
final class URLSessionExchange: ReplyExchange {
    let task: URLSessionDataTask
    let inbox: ReplyInbox
    /// The body that is sent from a file; nil if there is none. Kept until the end, because it removes a temporary file.
    let upload: URLSessionUpload?
    private let clock: any MonotonicClock

    init(
        _ task: URLSessionDataTask,
        _ upload: URLSessionUpload?,
        _ clock: any MonotonicClock,
        bodyLimit: Int,
        bufferMaximum: Int
    ) {
        self.task = task
        self.upload = upload
        self.clock = clock
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

    func sent(_ count: Int) { upload?.sent(count, clock) }

    func completed(_ error: (any Error)?) {
        guard let error else {
            let none = TransportError(.interrupted, "The reply has no head.")
            inbox.finish(inbox.hasHead ? .success(()) : .failure(none))
            return
        }
        inbox.finish(.failure(URLSessionFailure.error(error, requestHasLeft: inbox.hasHead)))
    }
}
