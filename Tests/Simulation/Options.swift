import Foundation

/// The command line.
struct Options {
    struct Failure: Error, CustomStringConvertible { let description: String }

    static let usage = """
        usage: simulate [--seeds N] [--first N] [--seed N] [--plans PATH] [--minutes M] [--twice N] [--jobs N] [--reduce]
                        [--until-failure] [--themes a,b]
          --seeds N         run the plans of N seeds, which go through all kinds of runs (100 if nothing else is to be run)
          --first N         the first of these seeds (1)
          --seed N          run the plan of one seed and print its trace
          --themes LIST     of these seeds only those whose plans have one of the themes
          --plans PATH      run the plans in a file too, one a line; a single plan prints its trace
          --minutes M       the length of the part with faults in plans from seeds, in minutes of virtual time
          --jobs N          processes that share the plans (1)
          --twice N         run the first N plans twice and compare the hashes
          --reduce          reduce failing plans to few steps, and write the plans and their recordings
          --until-failure   end after the first plan that fails
        """

    /// What is run: the plans of a file, then those of seeds.
    var plans: [Plan] = []
    /// The number of plans that are run twice.
    var twice = 0
    var isTraced = false
    var reduces = false
    var endsAtFailure = false
    var jobs = 1

    init(_ arguments: some Sequence<String>) throws(Failure) {
        var count: Int?
        var (first, minutes): (UInt64, Int?) = (1, nil)
        var path: String?
        var themes: Set<Theme>?
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
                (first, count) = (try number(name), 1)
            case "--minutes": minutes = Int(try number(name))
            case "--jobs": jobs = max(1, Int(try number(name)))
            case "--twice": twice = Int(try number(name))
            case "--reduce": reduces = true
            case "--until-failure": endsAtFailure = true
            case "--themes":
                var named: Set<Theme> = []
                for name in (left.popFirst() ?? "").split(separator: ",") {
                    guard let theme = Theme(rawValue: String(name)) else {
                        throw Failure(description: "'\(name)' is no theme: \(Theme.allCases.map(\.rawValue)).")
                    }
                    named.insert(theme)
                }
                themes = named
            case "--plans": path = left.popFirst() ?? ""
            default: throw Failure(description: "'\(name)' is not an option.")
            }
        }
        if let path { plans = try Plan.read(path) }
        if let count = count ?? (plans.isEmpty ? 100 : nil) {
            let seeds = (0..<UInt64(count)).map { first + $0 }.filter { themes?.contains(Theme(seed: $0)) ?? true }
            plans += seeds.map { Plan(seed: $0, minutes: minutes) }
        }
        isTraced = plans.count == 1
    }
}
