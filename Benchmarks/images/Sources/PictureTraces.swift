import Foundation
import Larder

/// A picture that is shown.
struct Shown {
    var key: Int
    /// The bytes of its decoded pixels.
    var byteCount: Int
    /// The pixels of its file, which decide how long decoding takes.
    var sourcePixels: Int
}

extension SeededGenerator {
    /// A number below `count`, small ones more often.
    fileprivate mutating func popular(_ count: Int) -> Int { Int(pow(unit(), 3) * Double(count)) }
}

/// The order in which an app shows pictures.
enum PictureTrace: String, CaseIterable {
    /// A feed of avatars and photos that is scrolled down, partly back, and up again; profiles are opened in between.
    case feed
    /// Grids of thumbnails, photos in full size that are swiped through, and back to the grid.
    case gallery
    /// Chats with avatars, stickers and photos of all sizes, which are opened again.
    case mixed

    static let length = 60_000

    private static func avatar(_ key: Int) -> Shown { Shown(key: key, byteCount: 96 * 96 * 4, sourcePixels: 192 * 192) }

    private static func photo(_ key: Int) -> Shown {
        Shown(key: 100_000 + key, byteCount: 750 * 563 * 4, sourcePixels: 1_280 * 960)
    }

    private static func thumbnail(_ key: Int) -> Shown {
        Shown(key: 1_000_000 + key, byteCount: 180 * 180 * 4, sourcePixels: 320 * 240)
    }

    private static func full(_ key: Int) -> Shown {
        Shown(key: 2_000_000 + key, byteCount: 1_280 * 960 * 4, sourcePixels: 1_280 * 960)
    }

    var pictures: [Shown] {
        var generator = SeededGenerator(seed: 7)
        var shown: [Shown] = []
        while shown.count < Self.length {
            switch self {
            case .feed: Self.feed(&shown, &generator)
            case .gallery: Self.gallery(&shown, &generator)
            case .mixed: Self.chats(&shown, &generator)
            }
        }
        return Array(shown.prefix(Self.length))
    }

    private static func feed(_ shown: inout [Shown], _ generator: inout SeededGenerator) {
        let newest = 20_000 + shown.count / 20
        func row(_ post: Int) {
            var own = SeededGenerator(seed: UInt64(post))
            shown.append(avatar(own.popular(400)))
            if own.uniform(in: 0..<3) > 0 { shown.append(photo(post)) }
        }
        let depth = generator.uniform(in: 10..<120)
        for offset in 0..<depth {
            row(newest - offset)
            if generator.uniform(in: 0..<15) == 0 {
                let author = generator.popular(400)
                shown.append(full(author))
                for number in 0..<6 { shown.append(thumbnail(author * 100 + number)) }
            }
            guard generator.uniform(in: 0..<12) == 0 else { continue }
            for back in 0..<min(offset, generator.uniform(in: 3..<25)) { row(newest - offset + back) }
        }
        for offset in (0..<depth).reversed() { row(newest - offset) }
    }

    private static func gallery(_ shown: inout [Shown], _ generator: inout SeededGenerator) {
        let album = generator.uniform(in: 0..<12)
        let (base, length) = (album * 1_000, 60 + album * 40)
        for start in stride(from: 0, to: length, by: 12) {
            let page = base + start
            for offset in 0..<12 { shown.append(thumbnail(page + offset)) }
            guard generator.uniform(in: 0..<3) == 0 else { continue }
            let first = page + generator.uniform(in: 0..<12)
            for step in 0..<generator.uniform(in: 1..<8) {
                shown.append(full(first + step))
                if generator.uniform(in: 0..<5) == 0 { shown.append(full(first + step - 1)) }
            }
            for offset in 0..<12 { shown.append(thumbnail(page + offset)) }
        }
        for offset in (0..<length).reversed() where generator.uniform(in: 0..<2) == 0 {
            shown.append(thumbnail(base + offset))
        }
    }

    private static func chats(_ shown: inout [Shown], _ generator: inout SeededGenerator) {
        let chat = generator.popular(40)
        shown.append(avatar(chat))
        func received(_ number: Int) -> Shown {
            var own = SeededGenerator(seed: UInt64(chat * 100_000 + number))
            let byteCount = Int(50_000 * pow(120, own.unit()))
            return Shown(
                key: 6_000_000 + chat * 100_000 + number,
                byteCount: byteCount,
                sourcePixels: byteCount * 3 / 8
            )
        }
        let newest = 1_000 + shown.count / 20
        for _ in 0..<generator.uniform(in: 5..<40) {
            switch generator.uniform(in: 0..<10) {
            case 0..<4:
                let sticker = 5_000_000 + generator.popular(600)
                shown.append(Shown(key: sticker, byteCount: 256 * 256 * 4, sourcePixels: 256 * 256))
            case 4..<6: shown.append(avatar(generator.uniform(in: 0..<80)))
            default: shown.append(received(newest - generator.popular(200)))
            }
        }
        for number in (newest - generator.uniform(in: 5..<40))..<newest { shown.append(received(number)) }
    }
}
