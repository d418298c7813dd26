import Foundation
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A process with its output, by posix_spawn(3): it inherits nothing of the tests' but what it is given.
///
/// One thread follows it: reads both pipes to their ends, then waits for the process. Safe from any thread.
final class CommandProcess: Sendable {
    private struct State {
        var output: [UInt8] = []
        var errors: [UInt8] = []
        var code: Int32?
        /// Whether its identifier is still its own: from when it is waited for, the system may give it to another.
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

    struct SpawnFailure: Error {
        let number: Int32
    }

    private let state = Mutex(State())
    private let identifier: pid_t

    init(_ executable: String, _ arguments: [String], environment: [String: String]) throws {
        let output = try Self.makePipe()
        let errors = try Self.makePipe()
        var child = pid_t()
        let number = Self.spawn(
            &child,
            executable,
            [executable] + arguments,
            environment.map { "\($0)=\($1)" },
            output.write,
            errors.write
        )
        close(output.write)
        close(errors.write)
        guard number == 0 else {
            close(output.read)
            close(errors.read)
            throw SpawnFailure(number: number)
        }
        identifier = child
        let thread = Thread { self.follow(output.read, errors.read) }
        thread.name = "larder command"
        thread.start()
    }

    private static func makePipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        guard unsafe pipe(&ends) == 0 else { throw SpawnFailure(number: errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private static func spawn(
        _ child: inout pid_t,
        _ executable: String,
        _ arguments: [String],
        _ environment: [String],
        _ output: Int32,
        _ errors: Int32
    ) -> Int32 {
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
            var attributes: posix_spawnattr_t?
        #else
            var actions = unsafe posix_spawn_file_actions_t()
            var attributes = posix_spawnattr_t()
        #endif
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawnattr_init(&attributes)
        defer {
            unsafe posix_spawn_file_actions_destroy(&actions)
            unsafe posix_spawnattr_destroy(&attributes)
        }
        unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        unsafe posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)
        var flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        #if canImport(Darwin)
            flags |= POSIX_SPAWN_CLOEXEC_DEFAULT
        #else
            // A pipe's or a listener's descriptor that is left open in a child keeps its peer waiting.
            for descriptor in openDescriptors where descriptor > STDERR_FILENO {
                unsafe posix_spawn_file_actions_addclose(&actions, descriptor)
            }
        #endif
        // What the tests' process ignores, such as SIGPIPE, would be ignored in the child too.
        var (all, none) = (sigset_t(), sigset_t())
        unsafe sigfillset(&all)
        unsafe sigdelset(&all, SIGKILL)
        unsafe sigdelset(&all, SIGSTOP)
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigdefault(&attributes, &all)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
        var words = unsafe arguments.map { unsafe strdup($0) } + [nil]
        var variables = unsafe environment.map { unsafe strdup($0) } + [nil]
        defer {
            unsafe (words + variables).forEach { unsafe free($0) }
        }
        return unsafe posix_spawn(&child, executable, &actions, &attributes, &words, &variables)
    }

    /// What is open now. Closing what is gone by then is no error to posix_spawn(3).
    private static var openDescriptors: [Int32] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        return names?.compactMap { Int32($0) } ?? []
    }

    // MARK: Following

    private func follow(_ output: Int32, _ errors: Int32) {
        var polled = [output, errors].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        var buffer = [UInt8](repeating: 0, count: 1 << 14)
        while polled.contains(where: { $0.fd >= 0 }) {
            if unsafe poll(&polled, nfds_t(polled.count), -1) < 0, errno != EINTR { break }
            for index in polled.indices where polled[index].fd >= 0 && polled[index].revents != 0 {
                let count = unsafe read(polled[index].fd, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                if count <= 0 {
                    close(polled[index].fd)
                    // poll(2) passes over it from now on.
                    polled[index].fd = -1
                } else {
                    note { state in
                        if index == 0 { state.output += buffer[..<count] } else { state.errors += buffer[..<count] }
                    }
                }
            }
        }
        // First without taking note of it: until then nobody else has its identifier, and a signal goes where it should.
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        state.withLock { $0.isKnown = false }
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

    private func wait(_ text: [UInt8]?) async {
        // A test whose time is over does not wait for a process that never ends.
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                note { $0.waiters.append(Waiter(text: text, continuation: continuation)) }
            }
        } onCancel: {
            send(SIGKILL)
        }
    }

    /// Returns when the process has ended.
    func ended() async { await wait(nil) }

    /// Returns when a text was printed, or the process has ended.
    func printed(_ text: String) async { await wait(Array(text.utf8)) }

    /// Sends a signal, unless the process has ended.
    func send(_ signal: Int32) {
        state.withLock { state in
            if state.isKnown { _ = kill(identifier, signal) }
        }
    }

    /// What there is so far.
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
