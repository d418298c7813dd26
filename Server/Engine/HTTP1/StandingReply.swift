import LarderCoding
import LarderHTTP
package import LarderTime

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A reply that holds for every request of the same bytes, for as long as it says so.
///
/// A handler that attaches one to a reply (`Reply.standing`) spares itself and the engine the reading of a request that came
/// before: the head is compared and not parsed, and the reply is sent as it was.
package protocol StandingReply: AnyObject, Sendable {
    /// Whether the handler would answer the same again. Asked on the loop's thread for every such request.
    func stands() -> Bool

    /// It was given again, or is about to be in one write. Not called when nobody wants records.
    func wasRepeated(_ exchange: RepeatedExchange)
}

/// An exchange that was answered with a reply that stands.
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

/// The replies that stand, by the bytes of their requests. Confined to its loop; bounded, because a place holds one reply and a
/// reply at most `replyBytesMaximum`. What its `StandingReply` holds lives for as long.
struct StandingReplies {
    final class Entry {
        /// The request's head with its empty line.
        let request: [UInt8]
        /// The whole reply.
        private(set) var reply: [UInt8]
        let standing: any StandingReply
        private let dateStart: Int
        private var dateSecond: Int64

        init(
            _ request: Request,
            _ prepared: PreparedResponse,
            extra: [UInt8],
            _ standing: any StandingReply,
            _ date: DateField
        ) {
            self.request = request.head + StandingReplies.emptyLine
            self.standing = standing
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

        /// Has the reply tell the present time: a `Date` line has the same length in any second.
        func update(_ date: DateField) {
            guard date.second != dateSecond else { return }
            dateSecond = date.second
            for index in date.line.indices { reply[dateStart + index] = date.line[index] }
        }
    }

    static let replyBytesMaximum = 32 << 10
    private static let emptyLine: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]
    /// A power of two. Found by a hash of the request; a later one takes an earlier one's place.
    private static let placeCount = 128
    private var places: [Entry?] = []

    /// The reply to what was received in one piece, if that is a whole request that had one which stood.
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

    /// Keeps a reply behind which the connection stays open, where its request is nothing but a head.
    mutating func keep(
        _ prepared: PreparedResponse,
        extra: [UInt8],
        to request: Request,
        _ standing: any StandingReply,
        _ date: DateField
    ) {
        guard request.method == .get, request.minorVersion == 1, request.body.isEmpty,
            request.fields.range(of: "transfer-encoding") == nil,
            prepared.head.count + prepared.body.count + extra.count + 64 <= Self.replyBytesMaximum
        else { return }
        if places.isEmpty { places = Array(repeating: nil, count: Self.placeCount) }
        let entry = Entry(request, prepared, extra: extra, standing, date)
        let key = entry.request
        places[Self.place(key.span)] = entry
    }

    private static func place(_ bytes: Span<UInt8>) -> Int {
        Int(truncatingIfNeeded: ContentHash.hash64(bytes) & UInt64(placeCount - 1))
    }
}
