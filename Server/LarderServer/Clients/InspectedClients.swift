import LarderCoding
import LarderEngine
import Synchronization

/// The clients that show themselves (`APIClient.Configuration.inspector`), each over a WebSocket that it has opened. They are asked only while
/// somebody looks. Safe from any thread.
final class InspectedClients: Sendable {
    private struct Question {
        let client: Int
        let loop: EventLoop
        let timer: TimerID
        let answered: @Sendable (JSONValue?) -> Void
    }

    private struct State {
        var lastClient = 0
        var lastQuestion = 0
        /// Each with the name of the world that it has connected to.
        var handles: [Int: (handle: ChannelHandle, world: String)] = [:]
        var questions: [Int: Question] = [:]
    }

    static let countMaximum = 64
    private let state = Mutex(State())

    /// The numbers of the clients that are connected to a world, in the order in which they came.
    func numbers(in world: String) -> [Int] {
        state.withLock { $0.handles.filter { $0.value.world == world }.keys.sorted() }
    }

    var hasRoom: Bool { state.withLock { $0.handles.count < Self.countMaximum } }

    /// Asks a client.
    ///
    /// - Parameters:
    ///   - action: what it is to do, with its members.
    ///   - loop: where the time limit runs.
    ///   - limit: how long the client has to answer.
    ///   - answered: called once with the answer; nil if the client has gone or was late.
    /// - Returns: the number of the question, for `withdraw`.
    func ask(
        _ client: Int,
        _ action: String,
        _ members: JSONObject = JSONObject(),
        on loop: EventLoop,
        within limit: Duration,
        _ answered: @escaping @Sendable (JSONValue?) -> Void
    ) -> Int {
        let number = state.withLock { state in
            state.lastQuestion += 1
            return state.lastQuestion
        }
        let timer = loop.schedule(after: limit) { [weak self] in self?.end(number, nil) }
        let handle = state.withLock { state in
            let question = Question(client: client, loop: loop, timer: timer, answered: answered)
            state.questions[number] = question
            return state.handles[client]?.handle
        }
        var message = JSONObject([JSONObject.Member(name: "id", value: .integer(Int64(number)))])
        message["action"] = .string(action)
        for member in members.members { message[member.name] = member.value }
        if let handle { handle.send(text: JSONValue.object(message).encoded) } else { end(number, nil) }
        return number
    }

    /// The caller has gone: the answer is not waited for.
    func withdraw(_ question: Int) {
        guard let question = state.withLock({ $0.questions.removeValue(forKey: question) }) else { return }
        question.loop.cancel(question.timer)
    }

    private func end(_ number: Int, _ answer: JSONValue?) {
        guard let question = state.withLock({ $0.questions.removeValue(forKey: number) }) else { return }
        question.loop.cancel(question.timer)
        question.answered(answer)
    }

    // MARK: Connections

    fileprivate func opened(_ handle: ChannelHandle, in world: String) -> Int {
        state.withLock { state in
            state.lastClient += 1
            state.handles[state.lastClient] = (handle, world)
            return state.lastClient
        }
    }

    fileprivate func closed(_ client: Int) {
        let lost = state.withLock { state in
            state.handles[client] = nil
            return state.questions.filter { $0.value.client == client }.keys.sorted()
        }
        for number in lost { end(number, nil) }
    }

    fileprivate func received(_ text: [UInt8], from client: Int) {
        let message: JSONValue
        do { message = try JSONParser.parse(text) } catch {
            // No answer can be taken from it: the question ends at its time limit.
            return
        }
        guard let number = message["id"]?.integer.map({ Int($0) }),
            state.withLock({ $0.questions[number]?.client == client })
        else { return }
        end(number, message)
    }
}

/// Registers a client when its connection opens, and passes its answers on.
final class InspectedClient: ChannelHandler {
    private let clients: InspectedClients
    private let world: String
    private let number = Mutex<Int?>(nil)

    init(_ clients: InspectedClients, in world: String) { (self.clients, self.world) = (clients, world) }

    func opened(_ handle: ChannelHandle) {
        let new = clients.opened(handle, in: world)
        number.withLock { $0 = new }
    }

    func received(text: [UInt8]) { if let number = number.withLock({ $0 }) { clients.received(text, from: number) } }

    func closed(_ ending: WebSocketEnding) { if let number = number.withLock({ $0.take() }) { clients.closed(number) } }
}
