import Glibc
import LarderTransport

/// Runs every case of a fuzzing server (`wstest -m fuzzingserver`): opens `/runCase`, returns each message, and asks for the report at the end.
///
///     websocket-echo ws://127.0.0.1:9001
let server = CommandLine.arguments.dropFirst().first ?? "ws://127.0.0.1:9001"
var configuration = WebSocketClient.Configuration()
// The suite sends messages of 16 MiB, and some of its servers wait several seconds before they answer.
configuration.messageBytesMaximum = 32 << 20
configuration.inboxBytesMaximum = 32 << 20
configuration.outputBytesMaximum = 32 << 20
configuration.pingInterval = nil
let client = SocketTransport().webSockets(configuration)

let counting = try await client.connect("\(server)/getCaseCount")
guard case .text(let text)? = try await counting.receive(), let count = Int(text) else {
    print("\(server) did not state the number of its cases.")
    exit(1)
}
await counting.close()

for number in 1...count {
    let socket = try await client.connect("\(server)/runCase?case=\(number)&agent=larder")
    do {
        for try await message in socket.messages { try await socket.send(message) }
    } catch {
        // Half of the cases violate the protocol on purpose; the server judges how the client ended them.
        print("case \(number): \(error)")
    }
    await socket.close()
}
let reporting = try await client.connect("\(server)/updateReports?agent=larder")
_ = try await reporting.receive()
await reporting.close()
