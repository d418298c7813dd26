import LarderCoding
import LarderHTTP

/// Decodes the content of a response piece by piece.
struct ContentDecoder: ~Copyable, Sendable {
    private static let pieceBytesMaximum = 65_536

    private let coding: ContentCoding
    private let limits: Inflater.Limits
    private let zlib: Result<Zlib, InflateError>
    /// nil until the framing is known.
    private var inflater: Inflater?
    private var input: [UInt8] = []
    private var consumed = 0

    /// - Parameters:
    ///   - bytesMaximum: the most bytes of decoded content.
    ///   - ratioMaximum: the most decoded bytes for each received byte, judged beyond a mebibyte.
    init(
        _ coding: ContentCoding,
        bytesMaximum: Int,
        ratioMaximum: Int,
        zlib: Result<Zlib, InflateError> = Zlib.system
    ) {
        self.coding = coding
        self.zlib = zlib
        limits = Inflater.Limits(outputBytesMaximum: max(0, bytesMaximum), ratioMaximum: max(1, ratioMaximum))
    }

    /// Takes the next received bytes, after all of the ones before were decoded.
    mutating func receive(_ piece: [UInt8]) {
        if inflater == nil, !input.isEmpty {
            input += piece
        } else {
            input = piece
            consumed = 0
        }
    }

    /// Returns the next decoded bytes, at most 64 KiB; nil if more must be received.
    mutating func next() throws(TransportError) -> [UInt8]? {
        begin()
        let input = input
        var piece = [UInt8](repeating: 0, count: min(Self.pieceBytesMaximum, max(1_024, input.count * 4)))
        do throws(InflateError) {
            let count = try inflater?.read(piece.count, into: &piece, from: input.span, consumed: &consumed)
            guard let count else { return nil }
            piece.removeLast(piece.count - count)
        } catch {
            throw self.error(error)
        }
        let excess = input.count - consumed
        guard inflater?.hasEnded == false || excess == 0 else {
            throw self.error(.damaged("\(excess) bytes follow its end."))
        }
        return piece.isEmpty ? nil : piece
    }

    /// Checks that the content is complete. Empty content is, in any coding.
    mutating func end() throws(TransportError) {
        if inflater?.hasEnded == false || inflater == nil && !input.isEmpty { throw error(.truncated) }
    }

    /// Decides about the framing of `deflate` by its first two bytes: many servers leave out zlib's.
    private mutating func begin() {
        guard inflater == nil, input.count >= (coding == .deflate ? 2 : 1) else { return }
        var format = CompressionFormat.gzip
        if coding == .deflate {
            format = input[0] & 15 == 8 && (Int(input[0]) << 8 | Int(input[1])) % 31 == 0 ? .zlib : .deflate
        }
        inflater = Inflater(format, limits: limits, zlib: zlib)
    }

    private func error(_ error: InflateError) -> TransportError {
        switch error {
        case .tooLarge:
            TransportError(.tooLarge, "The content in the coding '\(coding.rawValue)' is too large. \(error)")
        case .unavailable:
            TransportError(.unsupportedCoding, "The content has the coding '\(coding.rawValue)'. \(error)")
        case .damaged, .truncated:
            TransportError(.interrupted, "The content in the coding '\(coding.rawValue)' is not complete. \(error)")
        }
    }
}
