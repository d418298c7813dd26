import LarderTime

/// Whether and how pixels that leave memory are kept on disk, so that they need not be decoded again. A value.
///
/// The file of a picture is on disk anyway; its pixels are larger. They are worth it where decoding takes longer than reading:
/// a small picture made of a large file. They are used only where a response says that their file may still be shown.
public struct ImageSpillRules: Sendable {
    /// How many bytes of pixels, as they are written.
    public var bytesMaximum = 64 << 20
    /// The largest picture, in bytes as they are written.
    public var entryBytesMaximum = 4 << 20
    /// Which pictures; by default those that took 20 ms to decode.
    public var isWorthIt: @Sendable (ImageWorth) -> Bool = { $0.decodeTime >= .milliseconds(20) }
    /// Whether those go to the disk too that leave because memory is short, though they take memory until they are written.
    public var spillsUnderPressure = false
    /// Compresses; together with `decompress`, or not at all.
    public var compress: (@Sendable ([UInt8]) throws -> [UInt8])?
    /// The opposite of `compress`.
    public var decompress: (@Sendable ([UInt8]) throws -> [UInt8])?

    /// The usual rules.
    public init() {}

    func makeSpill(
        _ disk: DiskStore,
        _ clock: any MonotonicClock,
        _ wall: any WallClock,
        onFailure: @escaping @Sendable (any Error) -> Void
    ) -> DiskSpill<ImageResultKey, MemoryPicture> {
        var limits = DiskSpill<ImageResultKey, MemoryPicture>.Limits()
        limits.bytesMaximum = bytesMaximum
        limits.entryBytesMaximum = entryBytesMaximum
        limits.waitingCostMaximum = max(8 << 20, entryBytesMaximum)
        let coding: DiskSpill<ImageResultKey, MemoryPicture>.Coding
        if let compress, let decompress {
            coding = .init(
                encode: SpilledPicture.encode,
                decode: SpilledPicture.decode,
                compress: compress,
                decompress: decompress
            )
        } else {
            coding = .init(encode: SpilledPicture.encode, decode: SpilledPicture.decode)
        }
        return DiskSpill(
            disk,
            name: "pixels",
            coding,
            limits: limits,
            clock: clock,
            wall: wall,
            onFailure: onFailure
        )
    }

    func takes(_ departure: MemoryTier<ImageResultKey, MemoryPicture>.Departure) -> Bool {
        switch departure.reason {
        case .cost, .count: isWorthIt(departure.value.worth)
        case .pressure: spillsUnderPressure && isWorthIt(departure.value.worth)
        default: false
        }
    }
}

/// Pixels as bytes.
enum SpilledPicture {
    /// The bytes are not what was written.
    struct Unreadable: Error {}

    static func encode(_ picture: MemoryPicture) -> [UInt8] {
        let image = picture.image
        let worth = picture.worth
        let id = Array(picture.contentID.utf8)
        let (load, decode) = (worth.loadTime.nanosecondsSaturating, worth.decodeTime.nanosecondsSaturating)
        let numbers: [Int64] = [
            Int64(image.width), Int64(image.height), image.isOpaque ? 1 : 0, Int64(image.sourceWidth),
            Int64(image.sourceHeight), Int64(worth.fileByteCount), worth.isOnDisk ? 1 : 0, load, decode,
            Int64(id.count),
        ]
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8 * numbers.count + id.count + image.pixels.count)
        for number in numbers {
            for shift in stride(from: 0, to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
        }
        bytes += id
        bytes += image.pixels
        return bytes
    }

    static func decode(_ bytes: [UInt8]) throws -> MemoryPicture {
        guard bytes.count >= 80 else { throw Unreadable() }
        var numbers = [Int64](repeating: 0, count: 10)
        for index in 0..<80 { numbers[index / 8] |= Int64(bytes[index]) << Int64(index % 8 * 8) }
        guard numbers.allSatisfy({ $0 >= 0 }), numbers[0] < 1 << 24, numbers[1] < 1 << 24, numbers[9] < 1 << 12 else {
            throw Unreadable()
        }
        let (width, height, idEnd) = (Int(numbers[0]), Int(numbers[1]), 80 + Int(numbers[9]))
        guard bytes.count - idEnd == width * height * 4 else { throw Unreadable() }
        let image = DecodedImage(
            width: width,
            height: height,
            pixels: Array(bytes[idEnd...]),
            isOpaque: numbers[2] == 1,
            sourceWidth: Int(numbers[3]),
            sourceHeight: Int(numbers[4])
        )
        return MemoryPicture(
            image: image,
            contentID: String(decoding: bytes[80..<idEnd], as: UTF8.self),
            freshness: nil,
            worth: ImageWorth(
                byteCount: image.cost,
                fileByteCount: Int(numbers[5]),
                isOnDisk: numbers[6] == 1,
                loadTime: .nanoseconds(numbers[7]),
                decodeTime: .nanoseconds(numbers[8])
            )
        )
    }
}
