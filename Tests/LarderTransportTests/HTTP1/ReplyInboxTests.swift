import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Reply inbox", .oneMinute)
struct ReplyInboxTests {
    private let late = TransportError(.timedOut, "late")

    private func inbox() -> ReplyInbox { ReplyInbox(bodyLimit: 100, bufferMaximum: 100) }

    private func taken(_ inbox: ReplyInbox) -> String {
        switch inbox.takeNow().piece {
        case nil: "nothing yet"
        case .success(let piece?)?: "\(piece)"
        case .success(nil)?: "the end"
        case .failure(let error)?: error.code.rawValue
        }
    }

    @Test func `dropped content is not reported as empty content`() {
        for isWhole in [true, false] {
            let inbox = inbox()
            if isWhole {
                inbox.completed((.ok, Fields()), [[1], [2]])
            } else {
                inbox.responded((.ok, Fields()))
                _ = inbox.received([1])
                _ = inbox.received([2])
            }
            #expect(taken(inbox) == "[1]")
            // As if the timeout fired now.
            inbox.finish(.failure(late), dropsContent: true)
            #expect(taken(inbox) == "timedOut", "whole: \(isWhole)")
            #expect(taken(inbox) == "timedOut")
        }
    }

    @Test func `content that was read completely stays complete after a cancellation`() {
        let inbox = inbox()
        inbox.completed((.ok, Fields()), [[1]])
        #expect(taken(inbox) == "[1]")
        inbox.finish(.failure(late), dropsContent: true)
        #expect(taken(inbox) == "the end")
    }
}
