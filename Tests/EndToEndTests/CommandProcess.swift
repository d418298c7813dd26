import Foundation
import Glibc
import Larder
import Synchronization

@testable import LarderDemo

/// A child process and its output. It is killed when this object is released, when a task that waits for it is cancelled, and when
/// the test process ends, also by a signal.
///
/// Safe from any thread.
final class CommandProcess: Sendable {
    private let follower: ProcessFollower
    /// Standard input; nil if that is `/dev/null` or was closed. This process keeps the end for reading open too, so that it can write to a
    /// process that has ended.
    private let keyboard: Mutex<(read: Int32, write: Int32)?>

    /// - Parameter isTyping: whether standard input is what `type` writes.
    init(
        _ executable: String,
        _ arguments: [String],
        environment: [String: String],
        typing isTyping: Bool = false,
        watch: ProcessWatch? = nil
    ) throws {
        let watch = try watch ?? ProcessWatch.shared.get()
        let input = isTyping ? try Spawn.makePipe() : nil
        keyboard = Mutex(input)
        let output = try Spawn.makePipe()
        let errors = try Spawn.makePipe()
        defer {
            close(output.write)
            close(errors.write)
        }
        do {
            let child = try Spawn.start(
                executable,
                arguments,
                environment: environment,
                input: input?.read,
                output: output.write,
                errors: errors.write
            )
            follower = ProcessFollower(child, watch)
        } catch {
            close(output.read)
            close(errors.read)
            for end in [input?.read, input?.write].compactMap(\.self) { close(end) }
            throw error
        }
        watch.add(follower.identifier)
        let thread = Thread { [follower] in follower.follow(output.read, errors.read) }
        thread.name = "larder command"
        thread.start()
    }

    deinit {
        follower.send(SIGKILL)
        endTyping()
    }

    /// Writes to standard input.
    func type(_ text: String) {
        let bytes = Array(text.utf8)
        keyboard.withLock { keyboard in
            guard let keyboard else { return }
            // A text is shorter than PIPE_BUF, so the write is atomic.
            while unsafe write(keyboard.write, bytes, bytes.count) < 0, errno == EINTR {}
        }
    }

    /// Closes standard input.
    func endTyping() {
        guard let keyboard = keyboard.withLock({ $0.take() }) else { return }
        close(keyboard.read)
        close(keyboard.write)
    }

    /// Waits for the end of the process.
    func ended() async { await follower.wait(nil) }

    /// Waits until a text was printed or the process has ended.
    func printed(_ text: String) async { await follower.wait(Array(text.utf8)) }

    /// Sends a signal, unless the process has ended.
    func send(_ signal: Int32) { follower.send(signal) }

    /// The output so far.
    var run: CommandScene.Run { follower.run }
}

/// Kills the running child processes when the test process ends, also by a signal.
///
/// A shell reads their process IDs from a pipe whose other end only the test process has, so the pipe ends with it.
final class ProcessWatch: Sendable {
    static let shared = Result { try ProcessWatch() }

    /// It ignores signals to the process group, and has its own group.
    private static let script = """
        trap '' HUP INT QUIT TERM
        alive=
        while read -r sign id; do
          case $sign in
            +) alive="$alive $id " ;;
            -) alive="${alive%%" $id "*}${alive#*" $id "}" ;;
          esac
        done
        for id in $alive; do kill -KILL "$id"; done
        """

    private let descriptor: Mutex<Int32?>
    private let shell: pid_t

    init() throws {
        let pipe = try Spawn.makePipe()
        defer { close(pipe.read) }
        do {
            shell = try Spawn.start("/bin/sh", ["-c", Self.script], environment: [:], input: pipe.read, isLeader: true)
        } catch {
            close(pipe.write)
            throw error
        }
        descriptor = Mutex(pipe.write)
    }

    deinit { end() }

    /// Registers a process to be killed at the end.
    func add(_ identifier: pid_t) { tell("+ \(identifier)\n") }

    /// Removes a process that has ended, before the system can reuse its ID.
    func remove(_ identifier: pid_t) { tell("- \(identifier)\n") }

    private func tell(_ line: String) {
        let bytes = Array(line.utf8)
        // A line is shorter than PIPE_BUF, so the write is atomic.
        descriptor.withLock { descriptor in
            guard let descriptor else { return }
            while unsafe write(descriptor, bytes, bytes.count) < 0, errno == EINTR {}
        }
    }

    /// Kills the registered processes, as the end of the test process does.
    func end() {
        let last = descriptor.withLock { $0.take() }
        guard let last else { return }
        close(last)
        while waitpid(shell, nil, 0) < 0, errno == EINTR {}
    }
}

/// posix_spawn(3) without inherited descriptors.
private enum Spawn {
    struct Failure: Error {
        let number: Int32
    }

    static func makePipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        guard unsafe pipe(&ends) == 0 else { throw Failure(number: errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    /// Starts a process.
    ///
    /// - Parameters:
    ///   - input: the standard input; `/dev/null` by default, as for output and errors.
    ///   - isLeader: whether it leads a new process group.
    static func start(
        _ executable: String,
        _ arguments: [String],
        environment: [String: String],
        input: Int32? = nil,
        output: Int32? = nil,
        errors: Int32? = nil,
        isLeader: Bool = false
    ) throws -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawnattr_init(&attributes)
        defer {
            unsafe posix_spawn_file_actions_destroy(&actions)
            unsafe posix_spawnattr_destroy(&attributes)
        }
        for (given, descriptor) in [(input, STDIN_FILENO), (output, STDOUT_FILENO), (errors, STDERR_FILENO)] {
            if let given {
                unsafe posix_spawn_file_actions_adddup2(&actions, given, descriptor)
            } else {
                unsafe posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
            }
        }
        var flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        if isLeader { flags |= POSIX_SPAWN_SETPGROUP }
        // An inherited pipe or listener would keep its peer waiting.
        for descriptor in openDescriptors where descriptor > STDERR_FILENO {
            unsafe posix_spawn_file_actions_addclose(&actions, descriptor)
        }
        // The child would inherit ignored signals such as SIGPIPE.
        var (all, none) = (sigset_t(), sigset_t())
        unsafe sigfillset(&all)
        unsafe sigdelset(&all, SIGKILL)
        unsafe sigdelset(&all, SIGSTOP)
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigdefault(&attributes, &all)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
        var words = unsafe ([executable] + arguments).map { unsafe strdup($0) } + [nil]
        var variables = unsafe environment.map { unsafe strdup("\($0)=\($1)") } + [nil]
        defer {
            unsafe (words + variables).forEach { unsafe free($0) }
        }
        var child = pid_t()
        let number = unsafe posix_spawn(&child, executable, &actions, &attributes, &words, &variables)
        guard number == 0 else { throw Failure(number: number) }
        return child
    }

    /// The open descriptors. posix_spawn(3) ignores those that are closed by then.
    private static var openDescriptors: [Int32] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        return names?.compactMap { Int32($0) } ?? []
    }
}

/// Reads the output of a process to its end, then reaps the process. Safe from any thread.
private final class ProcessFollower: Sendable {
    private struct State {
        var output: [UInt8] = []
        var errors: [UInt8] = []
        var code: Int32?
        /// Whether the process was not reaped yet: afterwards the system may reuse its ID.
        var isKnown = true
        var waiters: [Waiter] = []
    }

    private struct Waiter {
        let text: [UInt8]?
        let continuation: CheckedContinuation<Void, Never>

        func isReady(_ state: State) -> Bool {
            state.code != nil || text.map { state.output.firstRange(of: $0) != nil } ?? false
        }
    }

    let identifier: pid_t
    private let watch: ProcessWatch
    private let state = Mutex(State())

    init(_ identifier: pid_t, _ watch: ProcessWatch) {
        self.identifier = identifier
        self.watch = watch
    }

    func follow(_ output: Int32, _ errors: Int32) {
        var polled = [output, errors].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        var buffer = [UInt8](repeating: 0, count: 1 << 14)
        while polled.contains(where: { $0.fd >= 0 }) {
            if unsafe poll(&polled, nfds_t(polled.count), -1) < 0, errno != EINTR { break }
            for index in polled.indices where polled[index].fd >= 0 && polled[index].revents != 0 {
                let count = unsafe read(polled[index].fd, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                if count <= 0 {
                    close(polled[index].fd)
                    // poll(2) ignores negative descriptors.
                    polled[index].fd = -1
                } else {
                    note { state in
                        if index == 0 { state.output += buffer[..<count] } else { state.errors += buffer[..<count] }
                    }
                }
            }
        }
        // Waits without reaping first, so that the ID stays valid for signals.
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        state.withLock { $0.isKnown = false }
        watch.remove(identifier)
        var status: Int32 = 0
        while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7f
        note { $0.code = signal == 0 ? (status >> 8) & 0xff : -signal }
    }

    private func note(_ change: (inout State) -> Void) {
        let ready = state.withLock { state in
            change(&state)
            let present = state
            state.waiters.removeAll { $0.isReady(present) }
            return present.waiters.filter { $0.isReady(present) }
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    func wait(_ text: [UInt8]?) async {
        // A cancelled test does not wait for a process that never ends.
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                note { $0.waiters.append(Waiter(text: text, continuation: continuation)) }
            }
        } onCancel: {
            send(SIGKILL)
        }
    }

    /// Sends a signal, unless the process has ended.
    func send(_ signal: Int32) {
        state.withLock { state in
            if state.isKnown { _ = kill(identifier, signal) }
        }
    }

    /// The output so far.
    var run: CommandScene.Run {
        state.withLock { state in
            CommandScene.Run(
                code: state.code ?? .min,
                output: String(decoding: state.output, as: UTF8.self),
                errors: String(decoding: state.errors, as: UTF8.self)
            )
        }
    }
}
