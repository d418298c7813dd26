import Glibc
import LarderCoding
import LarderHTTP
package import LarderTime

/// A reply that is valid for every byte-identical request while `isCurrent()` returns true.
///
/// If a handler attaches one to a reply (`Reply.repeatable`), repeats of the request bypass parsing and routing: the head is
/// compared, and the serialised reply is sent again.
package protocol RepeatableReply: AnyObject, Sendable {
    /// Whether the handler would give the same reply again. Called on the loop's thread for every repeat.
    func isCurrent() -> Bool

    /// Called when the reply was sent again, or is about to be in one write. Not called if `wantsRecords` is false.
    func wasRepeated(_ exchange: RepeatedExchange)
}

/// An exchange that was answered with a repeatable reply.
package struct RepeatedExchange: Sendable {
    /// The number of the connection in this server, from 1.
    package let connection: UInt64
    /// The number of the exchange on its connection, from 1.
    package let index: Int
    package let started: MonotonicTime
    package let ended: MonotonicTime
    /// Bytes of head and body.
    package let bytesSent: Int
}

/// Repeatable replies by the bytes of their requests. Confined to its loop. Bounded: each slot holds one reply of at most
/// `replyBytesMaximum`, and keeps its `RepeatableReply` alive.
struct RepeatableReplyCache {
    final class Entry {
        /// The request's head with its empty line.
        let request: [UInt8]
        /// The whole reply.
        private(set) var reply: [UInt8]
        let repeatable: any RepeatableReply
        private let dateStart: Int
        private var dateSecond: Int64

        init(
            _ request: Request,
            _ prepared: PreparedResponse,
            extra: [UInt8],
            _ repeatable: any RepeatableReply,
            _ date: DateField
        ) {
            self.request = request.head + RepeatableReplyCache.emptyLine
            self.repeatable = repeatable
            var reply: [UInt8] = []
            reply.reserveCapacity(prepared.head.count + date.line.count + extra.count + 2 + prepared.body.count)
            reply.append(contentsOf: prepared.head)
            dateStart = reply.count
            dateSecond = date.second
            reply.append(contentsOf: date.line)
            reply.append(contentsOf: extra)
            reply.append(contentsOf: [0x0D, 0x0A])
            reply.append(contentsOf: prepared.body)
            self.reply = reply
        }

        /// Updates the `Date` line, which has the same length at any time.
        func update(_ date: DateField) {
            guard date.second != dateSecond else { return }
            dateSecond = date.second
            for index in date.line.indices { reply[dateStart + index] = date.line[index] }
        }
    }

    static let replyBytesMaximum = 32 << 10
    private static let emptyLine: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]
    /// A power of two. The slot is a hash of the request; a new entry replaces an older one.
    private static let placeCount = 128
    private var places: [Entry?] = []

    /// The reply to received bytes, if they are exactly one request with a stored reply.
    func find(_ bytes: Span<UInt8>) -> Entry? {
        guard !places.isEmpty, let entry = places[Self.place(bytes)], entry.request.count == bytes.count else {
            return nil
        }
        let isSame = unsafe entry.request.withUnsafeBytes { known in
            unsafe bytes.withUnsafeBytes { received in
                guard let known = known.baseAddress, let start = received.baseAddress else { return false }
                return unsafe memcmp(known, start, received.count) == 0
            }
        }
        return isSame ? entry : nil
    }

    /// Stores a reply after which the connection persists, if its request is only a head.
    mutating func keep(
        _ prepared: PreparedResponse,
        extra: [UInt8],
        to request: Request,
        _ repeatable: any RepeatableReply,
        _ date: DateField
    ) {
        guard request.method == .get, request.minorVersion == 1, request.body.isEmpty,
            request.fields.range(of: "transfer-encoding") == nil,
            prepared.head.count + prepared.body.count + extra.count + 64 <= Self.replyBytesMaximum
        else { return }
        if places.isEmpty { places = Array(repeating: nil, count: Self.placeCount) }
        let entry = Entry(request, prepared, extra: extra, repeatable, date)
        let key = entry.request
        places[Self.place(key.span)] = entry
    }

    private static func place(_ bytes: Span<UInt8>) -> Int {
        Int(truncatingIfNeeded: ContentHash.hash64(bytes) & UInt64(placeCount - 1))
    }
}
