import Foundation
import Larder
import LarderCoding
import LarderServer

/// The tour: measures on this machine what Larder claims, with a backend of its own. Each chapter can be run alone.
struct Tour {
    private let terminal: Terminal

    init(_ terminal: Terminal) { self.terminal = terminal }

    /// Runs the chapters and shows each as soon as it is measured.
    func run(_ arguments: Arguments) async throws {
        let names = arguments.words.isEmpty ? TourName.allCases : arguments.words.compactMap { TourName(rawValue: $0) }
        let scene = try TourScene()
        var chapters: [TourChapter] = []
        if !terminal.isJSON { terminal.write(conditions + "\n\n") }
        for name in names {
            let chapter = try await scene.chapter(name)
            chapters.append(chapter)
            if !terminal.isJSON { TourText(terminal: terminal).show(chapter) }
        }
        await scene.stop()
        if terminal.isJSON {
            terminal.json(
                .members([("conditions", .string(conditions)), ("chapters", .array(chapters.map(\.json)))])
            )
        }
        guard let page = arguments.page else { return }
        do {
            try Data(TourPage(chapters: chapters, conditions: conditions).html.utf8)
                .write(to: URL(fileURLWithPath: page))
        } catch { throw Failure("The page cannot be written to \(page): \(error.localizedDescription)") }
        terminal.note("The page is in \(page).")
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
        case .death: try await death()
        case .reads: try await reads()
        case .taps: try await taps()
        case .invalidation: try await invalidation()
        case .paging: try await paging()
        case .eviction: try await eviction()
        case .policies: try await policies()
        case .budgets: try await budgets()
        case .pressure: try await pressure()
        case .features: try await features()
        }
    }

    /// A chapter without its measurements.
    func begin(_ name: TourName, _ question: String) -> TourChapter {
        TourChapter(name: name.rawValue, title: name.title, question: question)
    }
}
