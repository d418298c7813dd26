public import Larder
public import LarderHTTP

extension ScriptedTransport {
    /// The reply of a `ScriptedTransport` to one request: a head, and content in steps.
    ///
    ///     .response(TransportResponse(status: .ok))
    ///     .failure(TransportError(.interrupted, "gone"))
    ///     ScriptedTransport.Reply(status: .ok, [.bytes(first), .gate(gate), .failure(TransportError(.interrupted, "gone"))])
    ///     .response(page).held(by: gate)
    public struct Reply: Sendable {
        /// A step of the content.
        public enum Step: Sendable {
            /// A chunk arrives.
            case bytes([UInt8])
            /// Waits at a gate.
            case gate(TransportGate)
            /// The connection fails.
            case failure(TransportError)
            /// Nothing arrives until the reader is cancelled.
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

        /// A head and content in steps. The content ends normally after the last step.
        public init(status: Status = .ok, fields: Fields = Fields(), _ steps: [Step] = []) {
            self.init([], .success((status, fields)), steps)
        }

        /// A complete reply.
        public static func response(_ response: TransportResponse) -> Reply {
            let steps: [Step] = response.body.isEmpty ? [] : [.bytes(response.body)]
            return Reply(status: response.status, fields: response.fields, steps)
        }

        /// A reply with UTF-8 content.
        public static func text(_ text: String, status: Status = .ok, fields: Fields = Fields()) -> Reply {
            Reply(status: status, fields: fields, text.isEmpty ? [] : [.bytes(Array(text.utf8))])
        }

        /// A failure before any reply.
        public static func failure(_ error: TransportError) -> Reply { Reply([], .failure(error), []) }

        /// The same reply, held at a gate before its head.
        public func held(by gate: TransportGate) -> Reply { Reply([gate] + gates, head, steps) }
    }
}
