import LarderStorage
import LarderTime

/// A decoded picture in the memory tier, compressed if the pipeline does so.
struct MemoryPicture: Sendable {
    private enum Pixels {
        case plain(DecodedImage)
        case compressed([UInt8])
    }

    private var pixels: Pixels
    /// Identifies the file: pixels of a file that the server has just confirmed need not be decoded again.
    let contentID: String
    /// When the picture may be shown without a request to the server; nil for never.
    let freshness: Range<WallTime>?
    /// The time to get the pixels again: that of decoding, and of the download if the file is not on disk.
    let effort: Duration
    /// Whether the picture may be shown when it is stale and no request may be sent.
    var mayBeStale = false
    /// Whether the pixels may be written to disk.
    var maySpill = true
    /// When the file was loaded; nil before it is known.
    var loadedAt: MonotonicTime?

    init(image: DecodedImage, contentID: String, freshness: Range<WallTime>?, effort: Duration) {
        pixels = .plain(image)
        self.contentID = contentID
        self.freshness = freshness
        self.effort = effort
    }

    /// The picture. Restored with each call if it is compressed, in about a millisecond for each megabyte of pixels.
    var image: DecodedImage {
        switch pixels {
        case .plain(let image): return image
        case .compressed(let bytes):
            do {
                return try PixelCoding.image(DiskStore.CompressingTransform().decode(bytes))
            } catch { preconditionFailure("Pixels that this process has compressed can be restored: \(error)") }
        }
    }

    /// The bytes that the picture takes in memory.
    var byteCount: Int {
        switch pixels {
        case .plain(let image): image.cost
        case .compressed(let bytes): bytes.count
        }
    }

    /// Nanoseconds of the effort and a millisecond for each byte. Pictures with the lowest value are evicted first.
    var score: Double { (.milliseconds(1) + effort) / .nanoseconds(1) / Double(max(1, byteCount)) }

    /// The same picture with compressed pixels; unchanged if they do not become smaller.
    func compressed() -> MemoryPicture {
        guard case .plain(let image) = pixels,
            let bytes = try? DiskStore.CompressingTransform().encode(PixelCoding.bytes(image)), bytes.count < image.cost
        else { return self }
        var picture = self
        picture.pixels = .compressed(bytes)
        return picture
    }
}

/// Pixels with their sizes as bytes: five words of 32 bits, lowest byte first, and the rows.
enum PixelCoding {
    /// The bytes do not describe a picture.
    struct Damage: Error {}

    private static let headLength = 20

    static func bytes(_ image: DecodedImage) -> [UInt8] {
        let flags = image.isOpaque ? 1 : 0
        var bytes: [UInt8] = []
        bytes.reserveCapacity(headLength + image.pixels.count)
        for word in [image.width, image.height, image.sourceWidth, image.sourceHeight, flags] {
            for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: word >> shift)) }
        }
        return bytes + image.pixels
    }

    static func image(_ bytes: [UInt8]) throws -> DecodedImage {
        guard bytes.count >= headLength else { throw Damage() }
        func word(_ index: Int) -> Int {
            (0..<4).reduce(0) { $0 | Int(bytes[index * 4 + $1]) << (8 * $1) }
        }
        let (area, overflows) = word(0).multipliedReportingOverflow(by: word(1) * 4)
        guard !overflows, area == bytes.count - headLength else { throw Damage() }
        return DecodedImage(
            width: word(0),
            height: word(1),
            pixels: Array(bytes[headLength...]),
            isOpaque: word(4) & 1 != 0,
            sourceWidth: word(2),
            sourceHeight: word(3)
        )
    }
}
