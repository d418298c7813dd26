import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Where a body is truncated.
public struct Truncate: Sendable, Hashable {
    enum Inside: String, Sendable, CaseIterable {
        case character
        case chunkHeader
    }

    /// Decides before `inside`.
    var byte: Int?
    var inside: Inside?

    /// At a byte.
    public static func byte(_ byte: Int) -> Truncate { Truncate(byte: byte) }
    /// Inside a multi-byte character; in the middle if there is none.
    public static let insideCharacter = Truncate(inside: .character)
    /// Inside the size of a chunk.
    public static let insideChunkHeader = Truncate(inside: .chunkHeader)
}

extension Truncate: FaultEffect {
    static let kind = FaultKind(
        "truncate",
        Truncate(),
        at: [.body],
        "fewer bytes than announced",
        [
            .init("byte", \.byte, .integer(0...1 << 30), example: 100),
            .init("inside", \.inside, .choice, example: .character),
        ],
        need: .any(["byte", "inside"])
    )

    var needsWholeBody: Bool { byte == nil }

    func change(_ processing: inout FaultProcessing, _ decision: FaultDecision) {
        // It is about text, which compressed bytes would hide.
        if byte == nil, inside == .character { processing.request = processing.request.removing(["accept-encoding"]) }
    }

    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request) {
        if let byte { return reply.breakOff(at: reply.offset(ofBody: byte, inside: true), .close) }
        guard inside == .character else {
            if let second = reply.chunk(sizeOfSecond: nil) { reply.breakOff(at: second + 1, .close) }
            return
        }
        // A continuation byte is never the first of a character, so the text before it is incomplete.
        let body = reply.body
        let middle = body.count / 2
        let inside =
            body.indices[middle...].first { body[$0] & 0xC0 == 0x80 }
            ?? body.indices[..<middle].last { body[$0] & 0xC0 == 0x80 }
        reply.breakOff(at: reply.headCount + (inside ?? middle), .close)
    }
}

struct MalformedChunk: FaultEffect {
    static let kind = FaultKind("malformedChunk", MalformedChunk(), at: [.body], "a chunk that cannot be parsed")

    var needsWholeBody: Bool { true }

    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request) {
        // Without its last line, because nobody can receive it completely.
        if reply.chunk(sizeOfSecond: "zz") != nil { reply.breakOff(at: reply.bytes.count - 2, .close) }
    }
}

struct Corrupt: FaultEffect {
    var bytes = 1

    static let kind = FaultKind(
        "corrupt",
        Corrupt(),
        at: [.body],
        "flipped bits, correct length",
        [.init("bytes", \.bytes, .integer(1...1 << 20), example: 2)]
    )

    var needsWholeBody: Bool { true }
    var damagesContent: Bool { true }

    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request) {
        var body = reply.body
        guard !body.isEmpty else { return }
        var generator = decision.generator
        for _ in 0..<bytes {
            let position = generator.uniform(in: body.indices)
            body[position] ^= UInt8(1) << UInt8(generator.uniform(in: 0..<8))
        }
        reply.body = body
    }
}

struct WrongContentType: FaultEffect {
    var value: String? = "text/html; charset=utf-8"

    static let kind = FaultKind(
        "contentType",
        WrongContentType(),
        at: [.body],
        "a wrong Content-Type",
        [.init("value", \.value, .text(length: 1...200), example: "text/plain")]
    )

    var damagesContent: Bool { true }

    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request) {
        if let value { reply.head.set("Content-Type", value) }
    }
}

struct MalformedJSON: FaultEffect {
    static let kind = FaultKind("malformedJSON", MalformedJSON(), at: [.body], "a body that cannot be parsed")

    var needsWholeBody: Bool { true }
    var damagesContent: Bool { true }

    func change(_ processing: inout FaultProcessing, _ decision: FaultDecision) {
        // It is about text, which compressed bytes would hide.
        processing.request = processing.request.removing(["accept-encoding"])
    }

    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request) {
        // The length is unchanged: only a parser detects the error.
        guard let last = reply.body.lastIndex(where: { $0 > 0x20 }) else { return }
        reply.body[last] = reply.body[last] == UInt8(ascii: "]") ? UInt8(ascii: "}") : UInt8(ascii: "]")
    }
}

struct Validators: FaultEffect {
    var mode: FaultAction.ValidatorFault?

    static let kind = FaultKind(
        "validators",
        Validators(),
        at: [.body],
        "unreliable ETags",
        [.init("mode", \.mode, .choice, example: .weak)],
        need: .all(["mode"])
    )

    private static let wrongTag = "\"never-changes\""

    var needsWholeBody: Bool { true }

    func change(_ processing: inout FaultProcessing, _ decision: FaultDecision) {
        // With a write the field is a condition, which protects what is there.
        guard mode != .weak, [.get, .head].contains(processing.request.method) else { return }
        processing.request = processing.request.removing(["if-none-match", "if-modified-since"])
    }

    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request) {
        let tag = reply.head["etag"]
        switch mode {
        case .missing:
            reply.head.remove("etag")
            reply.head.remove("last-modified")
        case .weak:
            guard let tag, !tag.hasPrefix("W/") else { return }
            reply.head.set("ETag", "W/" + tag)
        case .changing: if tag != nil { reply.head.set("ETag", "\"changing-\(decision.ordinal)\"") }
        case .wrong:
            if tag != nil { reply.head.set("ETag", Self.wrongTag) }
            guard request.fields.combined(.ifNoneMatch)?.contains(Self.wrongTag) ?? false, reply.head.status == .ok
            else { return }
            for name in ["content-length", "content-type"] { reply.head.remove(name) }
            reply.head.setStatus(.notModified)
            reply.body = []
        case nil: break
        }
    }
}
