import Foundation

/// The command line.
struct Options {
    struct Failure: Error, CustomStringConvertible { let description: String }

    static let usage = """
        usage: simulate [--seeds N] [--first N] [--seed N] [--seeds-file PATH] [--minutes M] [--twice N] [--jobs N] [--reduce]
                        [--until-failure] [--keep 1,2,3]
          --seeds N         run N seeds, dealt over all kinds of runs (100 if nothing else is to be run)
          --first N         the seeds follow one another from N on instead
          --seed N          run one seed and print its trace
          --seeds-file PATH run the seeds in a file too, one a line with a comment
          --minutes M       the length of the part with faults, in minutes of virtual time
          --jobs N          processes that share the seeds (1)
          --twice N         run the first N seeds twice and compare the hashes
          --reduce          reduce failing seeds to few steps, and write their recordings
          --until-failure   end after the first seed that fails
          --keep LIST       take only these steps of the plan, as a reduction prints them
        """

    var seeds: [UInt64] = []
    var minutes: Int?
    /// The seeds that are run twice.
    var twice: Set<UInt64> = []
    var isTraced = false
    var reduces = false
    var endsAtFailure = false
    var jobs = 1
    var kept: Set<Int>?

    init(_ arguments: some Sequence<String>) throws(Failure) {
        var count: Int?
        var first: UInt64?
        var twiceCount = 0
        var left = Array(arguments)[...]
        func number(_ name: String) throws(Failure) -> UInt64 {
            guard let text = left.popFirst(), let value = UInt64(text) else {
                throw Failure(description: "\(name) needs a number.")
            }
            return value
        }
        while let name = left.popFirst() {
            switch name {
            case "--seeds": count = Int(try number(name))
            case "--first": first = try number(name)
            case "--seed":
                seeds = [try number(name)]
                isTraced = true
            case "--minutes": minutes = Int(try number(name))
            case "--jobs": jobs = max(1, Int(try number(name)))
            case "--twice": twiceCount = Int(try number(name))
            case "--reduce": reduces = true
            case "--until-failure": endsAtFailure = true
            case "--keep": kept = Set((left.popFirst() ?? "").split(separator: ",").compactMap { Int($0) })
            case "--seeds-file": seeds += try Self.read(left.popFirst() ?? "")
            default: throw Failure(description: "'\(name)' is not an option.")
            }
        }
        if let count = count ?? (seeds.isEmpty ? 100 : nil) {
            seeds += first.map { first in (0..<UInt64(count)).map { first + $0 } } ?? Plan.dealtSeeds(count)
        }
        twice = Set(seeds.prefix(twiceCount))
    }

    private static func read(_ path: String) throws(Failure) -> [UInt64] {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw Failure(description: "The file '\(path)' cannot be read.")
        }
        var seeds: [UInt64] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            guard let word = line.split(separator: " ").first else { continue }
            guard let seed = UInt64(word) else {
                throw Failure(description: "Line \(index + 1) of '\(path)' begins with '\(word)', which is no seed.")
            }
            seeds.append(seed)
        }
        return seeds
    }
}
