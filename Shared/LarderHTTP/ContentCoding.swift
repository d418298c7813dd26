package import LarderCoding

/// A content coding that both sides support (RFC 9110 §8.4.1).
package enum ContentCoding: String, Sendable, Hashable, CaseIterable {
    case gzip
    /// zlib framing, despite the name. Some servers send DEFLATE without it.
    case deflate

    /// The coding of a name, `x-gzip` included (RFC 9110 §8.4.1.3); nil for others.
    package init?(name: some StringProtocol) {
        switch name.lowercased() {
        case "gzip", "x-gzip": self = .gzip
        case "deflate": self = .deflate
        default: return nil
        }
    }

    /// Compresses content.
    ///
    /// - Returns: nil without the system's zlib, or if there is no memory for it.
    package func encode(_ content: [UInt8]) -> [UInt8]? {
        try? Zlib.system.get().deflated(content, format, .good)
    }

    /// The most bytes that `decode` returns: a body of few bytes may be one of many gigabytes.
    private static let decodedBytesMaximum = 64 << 20

    /// Decompresses a body.
    ///
    /// - Throws: `.tooLarge` beyond 64 MiB; `.damaged`, `.truncated`, `.unavailable`.
    package func decode(_ coded: [UInt8]) throws(InflateError) -> [UInt8] {
        var inflater = Inflater(format, limits: Inflater.Limits(outputBytesMaximum: Self.decodedBytesMaximum))
        var (content, piece, consumed): ([UInt8], [UInt8], Int) = ([], [UInt8](repeating: 0, count: 65_536), 0)
        while !inflater.hasEnded {
            let count = try inflater.read(piece.count, into: &piece, from: coded.span, consumed: &consumed)
            guard count > 0 || inflater.hasEnded else { throw .truncated }
            content += piece[..<count]
        }
        return content
    }

    /// The framing that a sender must use.
    package var format: CompressionFormat {
        switch self {
        case .gzip: .gzip
        case .deflate: .zlib
        }
    }

    /// Chooses the coding of a response by the value of `Accept-Encoding` (RFC 9110 §12.5.3).
    ///
    /// - Returns: the coding with the greatest weight, `gzip` before `deflate`; nil for none: identity has a greater weight, or no coding is
    ///   acceptable. A weight that is invalid counts as 0.
    package static func negotiated(_ value: String) -> ContentCoding? {
        let members = FieldList.members(of: value)
        guard !members.isEmpty else { return nil }
        var weights: [ContentCoding: Int] = [:]
        var (any, identity): (Int?, Int?) = (nil, nil)
        for choice in members.map({ Negotiation.Choice($0) }) {
            let (name, weight) = (choice.range.prefix { $0 != ";" }, choice.weight ?? 0)
            if let coding = ContentCoding(name: name) {
                weights[coding] = weight
            } else if name == "*" {
                any = weight
            } else if name == "identity" {
                identity = weight
            }
        }
        var best: (coding: ContentCoding, weight: Int)?
        for coding in allCases {
            guard let weight = weights[coding] ?? any, weight > 0, weight > best?.weight ?? 0 else { continue }
            best = (coding, weight)
        }
        guard let best, best.weight >= identity ?? 0 else { return nil }
        return best.coding
    }
}
