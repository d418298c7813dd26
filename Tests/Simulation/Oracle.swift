/// An oracle that circumstances may excuse from judging.
///
/// Each judgement and each excuse is counted, so that an oracle that hardly ever judges is noticed.
enum Oracle: String, CaseIterable {
    /// Writings exist at the end.
    case writings
    /// Writings that were changed are as the last change has left them.
    case changes
    /// The server has the last tap on a post.
    case taps
    /// What a process has written is shown until it was sent, and then in fresh lists.
    case shownWritings
    /// The last tap on a post is shown.
    case shownTaps
    /// Nothing is called fresh for longer than its lifetime.
    case freshness
    /// Balances are not called fresh that are older than the last transfer.
    case balances
    /// A list of tasks has what was there when it was read.
    case tasks
    /// A list without gaps lacks nothing.
    case gaps
    /// What a device holds becomes current without an act.
    case convergence
    /// A refresh token is not exchanged again.
    case renewals
    /// A rule of the conduct report holds.
    case conduct
    /// Edits that met another one are as it was decided.
    case decisions
    /// What waits as data is shown as it says.
    case shownEdits
    /// Photos arrive whole, and once.
    case uploads
    /// No copy of a file is left.
    case files

    /// The least share of judgements in a dealt run of some hundred seeds.
    var floor: Double {
        switch self {
        case .decisions, .shownWritings, .writings, .shownEdits: 0.6
        case .convergence, .taps, .uploads, .files: 0.5
        case .changes, .gaps, .shownTaps: 0.4
        case .freshness, .renewals: 0.3
        case .balances, .conduct: 0.2
        case .tasks: 0.1
        }
    }
}

extension Simulation {
    /// Counts that an oracle judges, or that something excuses it; returns whether it judges.
    func judges(_ oracle: Oracle, unless isExcused: Bool) -> Bool {
        coverage.count("\(isExcused ? "excused" : "judged") \(oracle.rawValue)")
        return !isExcused
    }
}
