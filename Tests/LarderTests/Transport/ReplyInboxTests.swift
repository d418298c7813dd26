import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import Larder

@Suite("A reply between the one who receives it and the one who reads it", .oneMinute)
struct ReplyInboxTests {
    private let late = TransportError(.timedOut, "late")

    private func inbox() -> ReplyInbox { ReplyInbox(bodyLimit: 100, bufferMaximum: 100, canPause: true) }

    private func taken(_ inbox: ReplyInbox) -> String {
        switch inbox.takeNow().piece {
        case nil: "nothing yet"
        case .success(let piece?)?: "\(piece)"
        case .success(nil)?: "the end"
        case .failure(let error)?: error.code.rawValue
        }
    }

    @Test func `content that is given up before it is read is never taken for an empty one`() {
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
            // As when the time is over just now.
            inbox.finish(.failure(late), dropsContent: true)
            #expect(taken(inbox) == "timedOut", "whole: \(isWhole)")
            #expect(taken(inbox) == "timedOut")
        }
    }

    @Test func `content that was read is whole, whoever gives it up afterwards`() {
        let inbox = inbox()
        inbox.completed((.ok, Fields()), [[1]])
        #expect(taken(inbox) == "[1]")
        inbox.finish(.failure(late), dropsContent: true)
        #expect(taken(inbox) == "the end")
    }
}
