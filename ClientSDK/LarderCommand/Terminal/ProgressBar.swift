/// A progress bar of one line.
enum ProgressBar {
    /// `████████░░░░  8/12`, with eighths of a cell.
    static func text(_ done: Int, of total: Int, width: Int = 32) -> String {
        let share = total > 0 ? min(max(done, 0), total) * width * 8 / total : width * 8
        let eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
        let full = String(repeating: "█", count: share / 8) + eighths[share % 8]
        return full + String(repeating: "░", count: max(0, width - full.count)) + "  \(done)/\(total)"
    }
}
