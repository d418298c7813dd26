import Foundation

/// The command line.
struct Options {
    struct Failure: Error, CustomStringConvertible { let description: String }

    static let usage = """
        usage: simulate [--seeds N] [--first N] [--seed N] [--minutes M] [--twice] [--trace] [--keep 1,2,3] [--seeds-file PATH]
          --seeds N         run N seeds, from --first on (1)
          --seed N          run one seed and print its trace
          --minutes M       the length of the part with faults, in minutes of virtual time
          --jobs N          processes that share the seeds (1)
          --twice           run each seed twice and compare the hashes
          --reduce          reduce failing seeds to few steps, and write their recordings
          --until-failure   end after the first seed that fails
          --keep LIST       take only these steps of the plan, as a reduction prints them
          --seeds-file PATH run the seeds in a file, one a line with a comment
        """

    var seeds: [UInt64] = []
    var minutes: Int?
    var isTwice = false
    var isTraced = false
    var reduces = false
    var endsAtFailure = false
    var jobs = 1
    var kept: Set<Int>?

    init(_ arguments: some Sequence<String>) throws(Failure) {
        var count: UInt64 = 100
        var first: UInt64 = 1
        var left = Array(arguments)[...]
        func number(_ name: String) throws(Failure) -> UInt64 {
            guard let text = left.popFirst(), let value = UInt64(text) else {
                throw Failure(description: "\(name) needs a number.")
            }
            return value
        }
        while let name = left.popFirst() {
            switch name {
            case "--seeds": count = try number(name)
            case "--first": first = try number(name)
            case "--seed":
                seeds = [try number(name)]
                isTraced = true
            case "--minutes": minutes = Int(try number(name))
            case "--jobs": jobs = max(1, Int(try number(name)))
            case "--twice": isTwice = true
            case "--reduce": reduces = true
            case "--until-failure": endsAtFailure = true
            case "--keep": kept = Set((left.popFirst() ?? "").split(separator: ",").compactMap { Int($0) })
            case "--seeds-file": seeds = try Self.read(left.popFirst() ?? "")
            default: throw Failure(description: "'\(name)' is not an option.")
            }
        }
        if seeds.isEmpty { seeds = (0..<count).map { first + $0 } }
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
