public import Larder
public import LarderHTTP

/// What a `ScriptedTransport` does with one request: steps, taken one after another.
///
///     .response(TransportResponse(status: .ok))
///     .failure(TransportError(.interrupted, "gone"))
///     ScriptedReply(status: .ok, [.bytes(first), .gate(gate), .failure(TransportError(.interrupted, "gone"))])
///     .response(page).held(by: gate)
public struct ScriptedReply: Sendable {
    /// One thing that happens to the content.
    public enum Step: Sendable {
        /// A piece of it arrives.
        case bytes([UInt8])
        /// Nothing more arrives until the gate lets it.
        case gate(TransportGate)
        /// It breaks off.
        case failure(TransportError)
        /// Nothing more arrives at all, until the reader goes.
        case silence
    }

    let gates: [TransportGate]
    let head: Result<(status: Status, fields: Fields), TransportError>
    let steps: [Step]

    private init(
        _ gates: [TransportGate],
        _ head: Result<(status: Status, fields: Fields), TransportError>,
        _ steps: [Step]
    ) {
        self.gates = gates
        self.head = head
        self.steps = steps
    }

    /// A head, and content in steps. Behind the last step the content has ended in order.
    public init(status: Status = .ok, fields: Fields = Fields(), _ steps: [Step] = []) {
        self.init([], .success((status, fields)), steps)
    }

    /// A whole reply.
    public static func response(_ response: TransportResponse) -> ScriptedReply {
        let steps: [Step] = response.body.isEmpty ? [] : [.bytes(response.body)]
        return ScriptedReply(status: response.status, fields: response.fields, steps)
    }

    /// A reply with content in UTF-8.
    public static func text(_ text: String, status: Status = .ok, fields: Fields = Fields()) -> ScriptedReply {
        ScriptedReply(status: status, fields: fields, text.isEmpty ? [] : [.bytes(Array(text.utf8))])
    }

    /// No reply.
    public static func failure(_ error: TransportError) -> ScriptedReply { ScriptedReply([], .failure(error), []) }

    /// The same, whose head waits at a gate first.
    public func held(by gate: TransportGate) -> ScriptedReply { ScriptedReply([gate] + gates, head, steps) }
}
