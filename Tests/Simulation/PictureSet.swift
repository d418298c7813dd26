import Foundation

/// The pictures of the runs with pictures: PNG files, each pixel of which tells the picture and the rendition.
struct PictureSet: Sendable {
    /// One rendition of a picture.
    struct Rendition: Sendable, Hashable {
        let picture: Int
        /// The number of pixels of each side.
        let side: Int

        var path: String { "/v1/images/picture_\(picture)?width=\(side)" }
        /// The red of all its pixels; the others are the row and the column.
        var red: UInt8 { UInt8(picture * 16 + (PictureSet.sides.firstIndex(of: side) ?? 15)) }
    }

    static let count = 12
    static let sides = [8, 24, 48]
    static let all = (0..<count).flatMap { picture in sides.map { Rendition(picture: picture, side: $0) } }

    let directory: String

    /// Writes the files and the catalogue.
    init(directory: String) throws {
        self.directory = directory
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        var records: [[String: Any]] = []
        for picture in 0..<Self.count {
            var renditions: [[String: Any]] = []
            for rendition in Self.all where rendition.picture == picture {
                let bytes = Self.encode(rendition)
                let file = "\(picture)-\(rendition.side).png"
                try Data(bytes).write(to: URL(fileURLWithPath: "\(directory)/\(file)"))
                let tag = "\(Int(rendition.red) + 100)"
                renditions.append([
                    "width": rendition.side, "height": rendition.side, "type": "image/png", "file": file,
                    "bytes": bytes.count, "sha256": String(repeating: "0", count: 64 - tag.count) + tag,
                ])
            }
            records.append([
                "id": "picture_\(picture)", "alt": "picture \(picture)", "width": 48, "height": 48, "placeholder": "",
                "renditions": renditions,
            ])
        }
        let data = try JSONSerialization.data(withJSONObject: records, options: [.sortedKeys])
        try data.write(to: URL(fileURLWithPath: "\(directory)/images.json"))
    }

    func remove() { try? FileManager.default.removeItem(atPath: directory) }

    // MARK: PNG

    /// PNG (W3C, third edition) with 8 bits of red, green and blue, in one stored block of DEFLATE (RFC 1951 §3.2.4).
    private static func encode(_ rendition: Rendition) -> [UInt8] {
        let side = rendition.side
        var rows: [UInt8] = []
        for row in 0..<side {
            rows.append(0)
            for column in 0..<side { rows += [rendition.red, UInt8(row), UInt8(column)] }
        }
        let count = UInt16(rows.count)
        var deflated: [UInt8] = [0x78, 0x01, 1, UInt8(count & 255), UInt8(count >> 8)]
        deflated += [UInt8(~count & 255), UInt8(~count >> 8)]
        deflated += rows
        deflated += bigEndian(adler(rows))
        let header = bigEndian(UInt32(side)) + bigEndian(UInt32(side)) + [8, 2, 0, 0, 0]
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + chunk("IHDR", header) + chunk("IDAT", deflated)
            + chunk("IEND", [])
    }

    private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        let content = Array(type.utf8) + data
        return bigEndian(UInt32(data.count)) + content + bigEndian(checksum(content))
    }

    private static func bigEndian(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    private static func adler(_ bytes: [UInt8]) -> UInt32 {
        var (first, second): (UInt32, UInt32) = (1, 0)
        for byte in bytes {
            first = (first + UInt32(byte)) % 65_521
            second = (second + first) % 65_521
        }
        return second << 16 | first
    }

    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var sum: UInt32 = .max
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? 0xEDB8_8320 ^ sum >> 1 : sum >> 1 }
        }
        return ~sum
    }
}
