import Foundation
import Larder
import LarderCoding
import LarderServer

/// The tour: measures on this machine what Larder claims, with a backend of its own. Each chapter can be run alone.
struct Tour {
    let terminal: Terminal

    /// Runs the chapters and shows each as soon as it is measured.
    func run(_ arguments: Arguments) async throws {
        let names = arguments.words.isEmpty ? TourName.allCases : arguments.words.compactMap { TourName(rawValue: $0) }
        let scene = try TourScene(reads: arguments.reads)
        let text = TourText(width: min(100, terminal.size.columns), paint: terminal.paint)
        var chapters: [TourChapter] = []
        if !terminal.isJSON { for line in text.wrapped(conditions) + [""] { terminal.line(line) } }
        for name in names {
            let chapter = try await scene.chapter(name)
            chapters.append(chapter)
            if !terminal.isJSON { for line in text.lines(chapter) { terminal.line(line) } }
        }
        await scene.stop()
        if terminal.isJSON {
            terminal.json(
                .members([("conditions", .string(conditions)), ("chapters", .array(chapters.map(\.json)))])
            )
        }
    }

    /// When and on what machine the tour runs.
    private var conditions: String {
        var build = ""
        // The body runs in debug builds only.
        assert(
            {
                build = " This is a debug build: a release build is several times as fast."
                return true
            }()
        )
        let cores = ProcessInfo.processInfo.activeProcessorCount
        let date = SystemWallClock().now.rfc3339().prefix(10)
        return
            "Measured on \(date) with \(cores) processor cores; the server runs in the same process.\(build)"
    }
}

extension TourScene {
    func chapter(_ name: TourName) async throws -> TourChapter {
        switch name {
        case .tiers: try await tiers()
        case .reads: try await reads()
        case .taps: try await taps()
        case .invalidation: try await invalidation()
        case .paging: try await paging()
        case .eviction: try await eviction()
        case .features: try await features()
        }
    }
}
