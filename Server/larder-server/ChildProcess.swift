import Glibc
import LarderTime
import Synchronization

/// A command that is run to its end, with the end of its output.
enum ChildProcess {
    /// How the command ended.
    struct Ending {
        /// The exit code; nil after a signal.
        let code: Int32?
        let timedOut: Bool
        /// The end of what it has printed on both streams.
        let output: String

        var isSuccess: Bool { code == 0 && !timedOut }

        var description: String {
            if timedOut { return "was stopped at the time limit" }
            return code.map { "ended with exit code \($0)" } ?? "was ended by a signal"
        }
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Longer output keeps its end.
    private static let outputBytesMaximum = 64 << 10

    /// Runs a command in a process group of its own, without input, and waits for its end.
    ///
    /// - Parameters:
    ///   - variables: the environment besides that of this process.
    ///   - timeoutSeconds: after this time the group is killed.
    /// - Throws: `Failure` if the command cannot be started.
    static func run(_ words: [String], _ variables: [String: String], timeoutSeconds: Int) throws(Failure) -> Ending {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw Failure(description: "no pipe: \(message(errno))") }
        let (reader, writer) = (ends[0], ends[1])
        defer { close(reader) }
        _ = fcntl(reader, F_SETFD, FD_CLOEXEC)
        _ = fcntl(reader, F_SETFL, O_NONBLOCK)
        let process: pid_t
        do {
            defer { close(writer) }
            process = try start(words, variables, output: writer)
        }
        running.store(process, ordering: .sequentiallyConsistent)
        defer { running.store(0, ordering: .sequentiallyConsistent) }
        let end = now() + timeoutSeconds * 1_000
        var output: [UInt8] = []
        var status: Int32 = 0
        let isOver = follow(process, reader, &output, &status, until: end)
        if !isOver {
            _ = kill(-process, SIGKILL)
            while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
        }
        // What it has left behind in the background ends with it.
        _ = kill(-process, SIGKILL)
        let signal = status & 0x7F
        return Ending(
            code: signal == 0 ? (status >> 8) & 0xFF : nil,
            timedOut: !isOver,
            output: String(decoding: output, as: UTF8.self)
        )
    }

    private static func start(
        _ words: [String],
        _ variables: [String: String],
        output: Int32
    ) throws(Failure) -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawnattr_init(&attributes)
        defer {
            unsafe posix_spawn_file_actions_destroy(&actions)
            unsafe posix_spawnattr_destroy(&attributes)
        }
        unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        unsafe posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
        unsafe posix_spawn_file_actions_addclose(&actions, output)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        unsafe posix_spawnattr_setpgroup(&attributes, 0)
        var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
        let inherited = Environment.all.filter { line in !variables.keys.contains { line.hasPrefix($0 + "=") } }
        var environment =
            unsafe (inherited + variables.map { "\($0.key)=\($0.value)" }).map { unsafe strdup($0) } + [nil]
        defer {
            for index in unsafe arguments.indices { unsafe free(arguments[index]) }
            for index in unsafe environment.indices { unsafe free(environment[index]) }
        }
        var process: pid_t = 0
        let code = unsafe posix_spawnp(&process, words[0], &actions, &attributes, &arguments, &environment)
        guard code == 0 else { throw Failure(description: "'\(words[0])' cannot be started: \(message(code))") }
        return process
    }

    /// The process group of the command that is running; 0 for none.
    private static let running = Atomic<Int32>(0)

    /// Lets a signal that ends this process end the command as well.
    static func passOnSignals() {
        for number in [SIGINT, SIGTERM, SIGHUP] {
            _ = signal(number) { number in
                let group = ChildProcess.running.load(ordering: .sequentiallyConsistent)
                if group > 0 { _ = kill(-group, SIGKILL) }
                _ = signal(number, SIG_DFL)
                raise(number)
            }
        }
    }

    /// Reads the output of a process until it has ended; false if the time is over before. What it has left behind in the background may
    /// still have its output.
    private static func follow(
        _ process: pid_t,
        _ reader: Int32,
        _ output: inout [UInt8],
        _ status: inout Int32,
        until end: Int
    ) -> Bool {
        var isOpen = true
        while true {
            // Asked first, so that everything that it has printed is read.
            let ended = unsafe waitpid(process, &status, WNOHANG)
            if ended < 0, errno != EINTR { return false }
            if isOpen { isOpen = drain(reader, &output) }
            if ended == process { return true }
            let left = end - now()
            guard left > 0 else { return false }
            // Nothing tells the end without taking the status.
            var poller = pollfd(fd: isOpen ? reader : -1, events: Int16(POLLIN), revents: 0)
            _ = unsafe poll(&poller, 1, Int32(min(left, isOpen ? 50 : 5)))
        }
    }

    /// Reads what there is; false if no process has the other end any more.
    private static func drain(_ descriptor: Int32, _ output: inout [UInt8]) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return count < 0 }
            output += buffer[..<count]
            if output.count > outputBytesMaximum { output.removeFirst(output.count - outputBytesMaximum) }
        }
    }

    private static func now() -> Int { Int(SystemMonotonicClock().uptime.nanoseconds / 1_000_000) }

    private static func message(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }
}
