import LarderCoding
import LarderHTTP
import Synchronization

/// How far a script has run, and the last error of its steps. Safe from any thread.
///
/// A script is validated before its first step. A later step can still fail: at a limit, at a disk error, or because an action
/// is rejected.
final class ScriptProgress: Sendable {
    private struct State {
        var stepsRun = 0
        var lastError: JSONValue?
        var isCancelled = false
    }

    private let stepCount: Int
    private let state = Mutex(State())

    init(stepCount: Int) { self.stepCount = stepCount }

    /// - Parameters:
    ///   - number: the 1-based number of the step.
    ///   - error: the problem of the last operation of the step that failed; nil if none did.
    func ran(step number: Int, at time: Duration, error: JSONValue?) {
        state.withLock { state in
            state.stepsRun += 1
            guard let error else { return }
            state.lastError = .members([
                "step": .integer(Int64(number)), "atSeconds": .seconds(time), "error": error,
            ])
        }
    }

    /// Whether the remaining steps do not run.
    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func cancel() { state.withLock { $0.isCancelled = true } }

    /// The last error of a step in a sentence; nil without one.
    var failure: String? {
        guard let last = state.withLock({ $0.lastError }) else { return nil }
        let error = last["error"]
        let parts = [error?["status"]?.text, error?["detail"]?.string ?? error?["title"]?.string ?? error?.text]
        return "step \(last["step"]?.text ?? ""): \(parts.compactMap { $0 }.joined(separator: " "))"
    }

    var json: JSONValue {
        let state = state.withLock { $0 }
        return .members([
            "steps": .integer(Int64(stepCount)), "stepsRun": .integer(Int64(state.stepsRun)),
            "lastError": state.lastError,
        ])
    }
}
