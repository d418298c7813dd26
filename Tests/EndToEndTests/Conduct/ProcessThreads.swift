import Foundation

/// The threads of this process, as the kernel sees them (proc_pid_stat(5)).
enum ProcessThreads {
    /// Whether every thread but the calling one waits for something. True where the kernel does not say.
    static var othersSleep: Bool {
        let files = FileManager.default
        guard let own = try? files.destinationOfSymbolicLink(atPath: "/proc/thread-self"),
            let all = try? files.contentsOfDirectory(atPath: "/proc/self/task")
        else { return true }
        let me = own.split(separator: "/").last.map(String.init)
        return all.allSatisfy { thread in
            // A thread that has ended meanwhile does nothing.
            guard thread != me, let stat = files.contents(atPath: "/proc/self/task/\(thread)/stat") else { return true }
            // The state follows the name, which is in parentheses and may contain any character.
            guard let name = stat.lastIndex(of: UInt8(ascii: ")")), name + 2 < stat.endIndex else { return true }
            return stat[name + 2] == UInt8(ascii: "S")
        }
    }
}
