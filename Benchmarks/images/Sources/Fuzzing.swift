import Larder

/// Decodes damaged copies of a PNG or JPEG; the checksums of a PNG are corrected, so that the damage reaches the decoder.
/// Build it with `--sanitize=address` to detect accesses out of bounds.
func fuzz(_ file: [UInt8], _ rounds: Int, _ seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var (decoded, failed) = (0, 0)
    let limits = DecodedImage.Limits(sourcePixelsMaximum: 4_000_000, resultPixelsMaximum: 1_000_000)
    for round in 0..<rounds {
        var bytes = file
        for _ in 0...random.uniform(in: 0..<6) {
            let place = random.uniform(in: 8..<bytes.count)
            switch random.uniform(in: 0..<4) {
            case 0: bytes.remove(at: place)
            case 1: bytes.insert(UInt8(random.uniform(in: 0..<256)), at: place)
            default: bytes[place] = UInt8(random.uniform(in: 0..<256))
            }
        }
        if file.first == 0x89 { mendChecksums(&bytes) }
        do {
            let target = round % 3 == 0 ? nil : ImageTarget(width: 17, height: 13)
            _ = try ImageDecoders().decoder(for: file).decode(bytes, into: target, limits: limits)
            decoded += 1
        } catch {
            failed += 1
        }
    }
    print("seed \(seed): \(decoded) decoded, \(failed) failed")
}

private func mendChecksums(_ file: inout [UInt8]) {
    func integer(_ index: Int) -> Int { file[index..<(index + 4)].reduce(0) { $0 << 8 | Int($1) } }
    var position = 8
    while position + 12 <= file.count {
        let end = position + 8 + integer(position)
        guard end + 4 <= file.count else { return }
        var crc: UInt32 = 0xFFFF_FFFF
        for byte in file[(position + 4)..<end] {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? 0xEDB8_8320 ^ (crc >> 1) : crc >> 1 }
        }
        for offset in 0..<4 { file[end + offset] = UInt8(truncatingIfNeeded: ~crc >> UInt32(24 - offset * 8)) }
        position = end + 4
    }
}
