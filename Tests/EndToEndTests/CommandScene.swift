import Foundation
import LarderCoding
import Synchronization

/// The built `larder` as a process, in a directory of its own.
final class CommandScene: Sendable {
    /// What a run has left.
    struct Run: Sendable, CustomStringConvertible {
        var code: Int32
        var output: String
        var errors: String

        var json: JSONValue { get throws { try JSONParser.parse(Array(output.utf8)) } }
        var description: String { "exit \(code)\n\(output)\(errors)" }
    }

    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    /// Beside the bundle that these tests are in.
    private static let executable = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appendingPathComponent("larder")

    /// Runs the command to its end.
    func run(_ words: String..., on server: String, user: String = "ana") async throws -> Run {
        let running = try start(words, on: server, user: user)
        await running.wait { $0.isOver }
        return running.run
    }

    /// Starts the command.
    func start(_ words: [String], on server: String, user: String = "ana") throws -> Running {
        let process = Process()
        process.executableURL = Self.executable
        process.arguments = words
        process.environment = [
            "HOME": directory, "XDG_STATE_HOME": directory + "/state", "LARDER_SERVER": server, "LARDER_USER": user,
        ]
        let running = Running()
        process.standardOutput = running.pipe(isError: false)
        process.standardError = running.pipe(isError: true)
        process.standardInput = FileHandle.nullDevice
        process.terminationHandler = { process in
            running.note { state in
                state.code = process.terminationStatus
                state.openEnds -= 1
            }
        }
        try process.run()
        running.note { $0.identifier = process.processIdentifier }
        return running
    }

    /// A process that runs. Safe from any thread.
    final class Running: Sendable {
        struct State {
            var output: [UInt8] = []
            var errors: [UInt8] = []
            var code: Int32 = -1
            var identifier: Int32 = 0
            /// Both pipes, and the process.
            var openEnds = 3
            fileprivate var waiters: [Waiter] = []

            var isOver: Bool { openEnds == 0 }
            var text: String { String(decoding: output, as: UTF8.self) }
        }

        fileprivate struct Waiter {
            let isReady: @Sendable (State) -> Bool
            let continuation: CheckedContinuation<Void, Never>
        }

        private let state = Mutex(State())

        fileprivate func pipe(isError: Bool) -> Pipe {
            let pipe = Pipe()
            pipe.fileHandleForReading.readabilityHandler = { handle in
                let data = handle.availableData
                if data.isEmpty { handle.readabilityHandler = nil }
                self.note { state in
                    if isError { state.errors += data } else { state.output += data }
                    if data.isEmpty { state.openEnds -= 1 }
                }
            }
            return pipe
        }

        fileprivate func note(_ change: (inout State) -> Void) {
            let ready = state.withLock { state in
                change(&state)
                let present = state
                state.waiters.removeAll { $0.isReady(present) || present.isOver }
                return present.waiters.filter { $0.isReady(present) || present.isOver }
            }
            for waiter in ready { waiter.continuation.resume() }
        }

        /// Returns when something is so, or the process has ended.
        func wait(until isReady: @escaping @Sendable (State) -> Bool) async {
            await withCheckedContinuation { continuation in
                note { $0.waiters.append(Waiter(isReady: isReady, continuation: continuation)) }
            }
        }

        /// Returns when a text was printed, or the process has ended.
        func wait(for text: String) async { await wait { $0.text.contains(text) } }

        /// Presses Ctrl-C.
        func interrupt() { _ = kill(state.withLock { $0.identifier }, SIGINT) }

        var run: Run {
            state.withLock { state in
                Run(code: state.code, output: state.text, errors: String(decoding: state.errors, as: UTF8.self))
            }
        }
    }
}
