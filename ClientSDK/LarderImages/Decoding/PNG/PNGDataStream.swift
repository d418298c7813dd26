import LarderCoding

/// Reads the decompressed pixels of a PNG, whose zlib stream lies in pieces in the file (PNG §10.2).
struct PNGDataStream: ~Copyable {
    private let bytes: [UInt8]
    private let pieces: [Range<Int>]
    private var piece = 0
    private var position: Int
    private var inflater: Inflater

    /// - Parameters:
    ///   - pieces: the ranges of the stream in `bytes`, in order.
    init(_ bytes: [UInt8], _ pieces: [Range<Int>], _ zlib: Zlib) {
        self.bytes = bytes
        self.pieces = pieces
        position = pieces.first?.lowerBound ?? 0
        inflater = Inflater(.zlib, zlib: .success(zlib))
    }

    /// Reads the next bytes.
    ///
    /// - Throws: `.damaged` if the stream is invalid or too short, `.truncated` if its pieces end too soon.
    mutating func read(_ count: Int, into target: inout [UInt8], at offset: Int = 0) throws(ImageError) {
        let bytes = bytes
        var done = 0
        while true {
            do throws(InflateError) {
                let input = bytes.span.extracting(first: end)
                let place = offset + done
                done += try inflater.read(count - done, into: &target, at: place, from: input, consumed: &position)
            } catch {
                throw ImageError(error)
            }
            if done == count { return }
            guard !inflater.hasEnded else {
                throw ImageError(.damaged, "The compressed data ends before the picture does.")
            }
            guard nextPiece() else { throw ImageError(InflateError.truncated) }
        }
    }

    /// Reads to the end and compares the checksum. Additional data is ignored, as by other decoders.
    mutating func finish() throws(ImageError) {
        let bytes = bytes
        var additional: [UInt8] = [0]
        while true {
            do throws(InflateError) {
                let input = bytes.span.extracting(first: end)
                let count = try inflater.read(1, into: &additional, from: input, consumed: &position)
                if count > 0 || inflater.hasEnded { return }
            } catch {
                throw ImageError(error)
            }
            guard nextPiece() else { throw ImageError(InflateError.truncated) }
        }
    }

    private var end: Int { pieces.isEmpty ? 0 : pieces[piece].upperBound }

    private mutating func nextPiece() -> Bool {
        guard piece + 1 < pieces.count else { return false }
        piece += 1
        position = pieces[piece].lowerBound
        return true
    }
}

extension ImageError {
    init(_ error: InflateError) {
        switch error {
        case .truncated: self.init(.truncated, error.description)
        case .damaged, .tooLarge: self.init(.damaged, error.description)
        case .unavailable: self.init(.unsupportedFormat, error.description)
        }
    }
}
