import LarderCoding
import LarderImages

private let limits = DecodedImage.Limits(
    sourcePixelsMaximum: 1 << 18,
    resultPixelsMaximum: 1 << 18,
    workingBytesMaximum: 8 << 20
)

/// Decodes a file in two sizes and checks what comes out.
private func decode(_ bytes: [UInt8], _ decoder: any ImageDecoder) {
    let target = ImageTarget(width: 9, height: 7, mode: bytes.count % 2 == 0 ? .fit : .fill)
    let small = try? decoder.decode(bytes, into: target, limits: limits)
    let whole = try? decoder.decode(bytes, into: nil, limits: limits)
    for image in [small, whole] {
        guard let image else { continue }
        require(image.width > 0 && image.height > 0, "A picture has no pixels.")
        requireEqual(image.pixels.count, image.width * image.height * 4, "The number of bytes is wrong.")
    }
    if let small, let whole {
        requireEqual(
            [small.sourceWidth, small.sourceHeight],
            [whole.sourceWidth, whole.sourceHeight],
            "The size depends on the target."
        )
    }
    if whole != nil { require(small != nil, "A picture is decoded whole, but not smaller.") }
}

/// PNG files. The checksums of the chunks are corrected, so that changes reach the decoder; the one of the compressed data stays.
func fuzzPNG(_ bytes: [UInt8]) {
    decode(bytes, PNGDecoder())
    guard let zlib = try? Zlib.system.get() else { fail("There is no zlib.") }
    var mended = bytes
    var position = 8
    while position + 12 <= mended.count {
        let length = mended[position..<(position + 4)].reduce(0) { $0 << 8 | Int($1) }
        let end = position + 8 + length
        guard end + 4 <= mended.count else { break }
        let sum = zlib.crc32(mended, (position + 4)..<end)
        for offset in 0..<4 { mended[end + offset] = UInt8(truncatingIfNeeded: sum >> UInt32(24 - offset * 8)) }
        position = end + 4
    }
    if mended != bytes { decode(mended, PNGDecoder()) }
}

/// JPEG files.
func fuzzJPEG(_ bytes: [UInt8]) { decode(bytes, JPEGDecoder()) }
