import LarderEngine
import LarderTime

/// The fixed-size part of a journal entry.
struct JournalSlot {
    var number = 0
    var at: WallTime
    /// On the server's clock.
    var started: MonotonicTime
    var ended: MonotonicTime
    /// On the world's clock.
    var startedInWorld: MonotonicTime
    var endedInWorld: MonotonicTime
    /// The offset of its bytes in the arena: the request's head and body.
    var start = 0
    var headCount: Int32 = 0
    var bodyCount: Int32 = 0
    var droppedPrefixCount: Int32 = 0
    var exchangeIndex: Int32 = 0
    var connection: Int32 = 0
    var status: Int32 = 0
    var isComplete = true
    /// The address of the client; empty for a frame.
    var peer = ""
    var user: Int64 = 0
    var commit: Int64 = 0
    var requestBodyBytes = 0
    var bodyBytes = 0
    var bytesSent = 0
    var bytesSavedByCoding = 0

    var byteCount: Int { Int(headCount) + Int(bodyCount) }
}

/// A journal entry as it is stored. Writers wait while its bytes are copied, and not while they are decoded.
struct StoredJournalEntry {
    let slot: JournalSlot
    let requestHead: [UInt8]
    let requestBody: [UInt8]
    let replyHead: [UInt8]
    let frame: JournalEntry.Frame?
    let trace: ExchangeTrace?

    /// Nil for bytes that are no request. They were parsed when they arrived, so they parse again.
    var decoded: JournalEntry? {
        let parsed = try? Request(head: requestHead, body: requestBody, exchangeIndex: Int(slot.exchangeIndex))
        guard let parsed else { return nil }
        return JournalEntry(
            number: slot.number,
            kind: frame.map { .frame($0) } ?? .exchange,
            at: slot.at,
            request: parsed.droppingPathPrefix(Int(slot.droppedPrefixCount)),
            connection: Int(slot.connection),
            status: Int(slot.status),
            head: replyHead,
            bodyBytes: slot.bodyBytes,
            bytesSent: slot.bytesSent,
            bytesSavedByCoding: slot.bytesSavedByCoding,
            requestBodyBytes: slot.requestBodyBytes,
            started: slot.started,
            ended: slot.ended,
            startedInWorld: slot.startedInWorld,
            endedInWorld: slot.endedInWorld,
            isComplete: slot.isComplete,
            peer: slot.peer,
            user: slot.user,
            commit: slot.commit,
            trace: trace
        )
    }
}
