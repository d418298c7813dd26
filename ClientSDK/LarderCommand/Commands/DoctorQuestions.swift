import Foundation
import Larder
import LarderCoding

/// The answers to five questions about how an app behaves, from the records of its flight recorder.
struct DoctorQuestions {
    /// One question with its answer.
    struct Answer: Sendable, Hashable {
        let name: String
        /// The answer in plain sentences, with figures.
        let text: String
    }

    /// How long before the end of an interrupted run its prefetching counts.
    private static let lastMinute = Duration.seconds(60)

    private let history: RunHistory
    private var totals: TelemetryTotals { history.totals }

    init(_ history: RunHistory) { self.history = history }

    /// The five answers, in the order of the questions.
    var answers: [Answer] {
        [
            Answer(name: "first screen", text: firstScreen),
            Answer(name: "image memory", text: imageMemory),
            Answer(name: "failures by version", text: failures),
            Answer(name: "memory warnings", text: memoryWarnings),
            Answer(name: "prefetch before a kill", text: prefetching),
        ]
    }

    /// Is the hit rate of the first screen high?
    private var firstScreen: String {
        let all = totals.all
        guard let rate = all.firstContentHitRate else { return "No first content was recorded." }
        let count = Int(all.firstContent.count)
        let remote = Int(all.firstContentByTier[.network]?.count ?? 0)
        let tiers = CacheTier.allCases.compactMap { tier -> String? in
            guard let times = all.firstContentByTier[tier], let middle = times.percentile(0.5) else { return nil }
            return "\(tier.rawValue) \(times.count) (p50 \(TimeText.text(middle)))"
        }
        return "\(count - remote) of \(count) first contents (\(Self.percent(rate))) needed no server: "
            + tiers.joined(separator: ", ") + "."
    }

    /// Is the memory cache of pictures effective?
    private var imageMemory: String {
        guard let reads = totals.features["images"]?.reads[.memory], reads.hits + reads.misses > 0 else {
            return "No wanted picture was recorded."
        }
        let all = reads.hits + reads.misses
        var text = "Memory had \(reads.hits) of \(all) wanted pictures (\(Self.percent(reads.hitRate)))."
        if let times = totals.images[.delivered], let middle = times.percentile(0.5) {
            text += " The others took p50 \(TimeText.text(middle)) from disk or network."
        }
        let evicted = totals.evictions[.memory]?.values.reduce(0) { $0 &+ $1.count } ?? 0
        if evicted > 0 { text += " \(evicted) entries were evicted from memory." }
        return text
    }

    /// Did failures increase with a version, of pictures and of all requests?
    private var failures: String {
        let versions = totals.versions.sorted { $0.key.compare($1.key, options: .numeric) == .orderedAscending }
        guard !versions.isEmpty else {
            return "No request of a known version was recorded. Set appVersion of the client's services."
        }
        let parts = versions.map { name, version in
            let pictures = version.images + version.imagesFailed
            let counts = [
                Self.failed(version.requestsFailed, of: version.requests, "requests", version.failures),
                Self.failed(version.imagesFailed, of: pictures, "pictures", version.imageFailures),
            ]
            return "\(name): " + counts.compactMap(\.self).joined(separator: "; ")
        }
        return parts.joined(separator: ". ") + "."
    }

    /// `1 of 2 requests failed (50 %), 1 503`; nil without any.
    private static func failed(_ failed: Int, of all: Int, _ name: String, _ kinds: [String: Int]) -> String? {
        guard all > 0 else { return nil }
        let rate = percent(Double(failed) / Double(all))
        let kinds = kinds.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(3)
        return (["\(failed) of \(all) \(name) failed (\(rate))"] + kinds.map { "\($0.value) \($0.key)" })
            .joined(separator: ", ")
    }

    /// What was held and in flight at a memory warning?
    private var memoryWarnings: String {
        let warnings = totals.memoryWarnings
        guard warnings.count > 0 else { return "No memory warning was recorded." }
        let (last, most) = (warnings.last, warnings.maximum)
        return
            "\(Self.count(warnings.count, "warning")). At the last one \(SizeText.text(Int64(last.cost))) were in caches, "
            + "\(Self.count(last.requests, "request")) in flight and \(Self.count(last.loads, "load")) of pictures waiting or running; "
            + "the most were \(SizeText.text(Int64(most.cost))), \(most.requests) and \(most.loads)."
    }

    /// Was there too much prefetching or decoding before the process was killed?
    private var prefetching: String {
        guard let run = history.interrupted.last, let end = run.records.last else {
            return "No recorded run was interrupted."
        }
        var (started, finished, bytes, wanted) = (0, 0, 0, 0)
        var (decodes, pixels, decoding) = (0, 0, Duration.zero)
        var level: MemoryLevel?
        for record in run.records {
            guard let kind = TelemetryEvent.Kind(record) else { continue }
            if case .memoryLevel(let new, _, _) = kind { level = new }
            guard end.uptime - record.uptime <= Self.lastMinute else { continue }
            switch kind {
            case .tierMiss(.disk, "images.prefetch"): started += 1
            case .tierMiss(.disk, "images"): wanted += 1
            case .image(.download, _, let size, true):
                finished += 1
                bytes &+= size
            case .image(.decode, let duration, let size, _):
                decodes += 1
                pixels &+= size
                decoding += duration
            default: break
            }
        }
        let place = [run.command.map { "'\($0)'" }, version(of: end)].compactMap { $0 }.joined(separator: ", ")
        var text = "In the last minute before the end of the interrupted run"
        text += place.isEmpty ? "" : " (\(place))"
        text += " \(Self.count(started, "prefetch", "prefetches")) of pictures began, \(finished) ended with "
        text += "\(SizeText.text(Int64(bytes))), beside \(Self.count(wanted, "wanted download")). "
        text += "\(Self.count(decodes, "decode")) made \(SizeText.text(Int64(pixels))) of pixels"
        text += " in \(TimeText.text(decoding))."
        if let level { text += " The memory level was \(level)." }
        return text
    }

    private func version(of record: FlightRecorder.Record) -> String? {
        let version = record.labels.appVersion
        return version.isEmpty ? nil : "version \(version)"
    }

    private static func percent(_ share: Double) -> String { "\(Int((share * 100).rounded())) %" }

    private static func count(_ count: Int, _ one: String, _ many: String? = nil) -> String {
        "\(count) \(count == 1 ? one : many ?? one + "s")"
    }
}
