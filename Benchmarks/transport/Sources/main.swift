import Foundation
import FoundationNetworking
import Glibc
import LarderTransport

/// Measures requests to each URL, interleaved: `SocketTransport` over a kept connection, over new ones and from six tasks; for http Foundation's
/// `URLSession`, and a blocking C loop that knows the size of each reply, which is the lower bound.
let usage = """
    transport-benchmark http[s]://127.0.0.1:PORT/PATH…

    LARDER_BENCHMARK_ROOTS     the file of the authority of https URLs
    LARDER_BENCHMARK_ROUNDS    9
    LARDER_BENCHMARK_REQUESTS  2000 in each round; a tenth of them over new connections
    """
let urls = Array(CommandLine.arguments.dropFirst())
guard !urls.isEmpty else {
    print(usage)
    exit(2)
}
let environment = ProcessInfo.processInfo.environment
let rounds = environment["LARDER_BENCHMARK_ROUNDS"].flatMap { Int($0) } ?? 9
let requests = environment["LARDER_BENCHMARK_REQUESTS"].flatMap { Int($0) } ?? 2_000

func seconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

struct Sample {
    /// Requests per second.
    let rate: Double
    /// Processor time of this process per request, in microseconds.
    let processor: Double
}

func measure(_ count: Int, _ body: () async throws -> Void) async rethrows -> Sample {
    let (wall, processor) = (seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID))
    try await body()
    let took = seconds(CLOCK_MONOTONIC) - wall
    let used = seconds(CLOCK_PROCESS_CPUTIME_ID) - processor
    return Sample(rate: Double(count) / took, processor: used * 1e6 / Double(count))
}

/// Foundation's client.
struct FoundationTransport: Transport {
    let session = URLSession(configuration: .ephemeral)

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        guard let url = URL(string: request.url) else { throw TransportError(.invalidURL, request.url) }
        do {
            let (data, response) = try await session.data(for: URLRequest(url: url))
            let status = (response as? HTTPURLResponse)?.statusCode ?? 0
            return TransportStream(TransportResponse(status: .init(code: status), body: Array(data)))
        } catch { throw TransportError(.interrupted, "\(error)") }
    }
}

func middle(_ values: [Double]) -> String {
    let sorted = values.sorted()
    func text(_ value: Double) -> String { "\(Int(value.rounded()))" }
    return "\(text(sorted[sorted.count / 2])) (\(text(sorted[0])) – \(text(sorted[sorted.count - 1])))"
}

func sequential(_ transport: any Transport, _ url: String, _ count: Int) async throws {
    let request = TransportRequest(url: url)
    for _ in 0..<count {
        let reply = try await transport.send(request)
        guard reply.status.code == 200 else { throw TransportError(.interrupted, "status \(reply.status.code)") }
    }
}

func concurrent(_ transport: any Transport, _ url: String) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<6 {
            group.addTask {
                for _ in 0..<(requests / 6) { _ = try await transport.send(TransportRequest(url: url)) }
            }
        }
        try await group.waitForAll()
    }
}

func sockets(_ change: (inout SocketTransport.Configuration) -> Void = { _ in }) -> SocketTransport {
    var configuration = SocketTransport.Configuration()
    if let roots = environment["LARDER_BENCHMARK_ROOTS"] { configuration.tls.roots = .only(file: roots) }
    change(&configuration)
    return SocketTransport(configuration)
}

/// One line of the table.
struct Contender {
    let name: String
    var count = requests
    let run: () async throws -> Void
}

func contenders(_ url: String) throws -> [Contender] {
    let scheme = String(url.prefix { $0 != ":" })
    let kept = sockets()
    let few = max(1, requests / 10)
    var all = [
        Contender(name: "\(scheme), SocketTransport") { try await sequential(kept, url, requests) },
        Contender(name: "\(scheme), SocketTransport, 6 tasks") { try await concurrent(kept, url) },
    ]
    let new = sockets { $0.keepAlive = .zero }
    if scheme == "http" {
        // Over https it trusts the system's authorities only.
        let foundation = FoundationTransport()
        all.append(Contender(name: "http, URLSession") { try await sequential(foundation, url, requests) })
        all.append(Contender(name: "http, URLSession, 6 tasks") { try await concurrent(foundation, url) })
        let bare = try BareClient(url)
        all.append(Contender(name: "http, bare C loop") { try bare.run(requests) })
        all.append(Contender(name: "http, new connections", count: few) { try await sequential(new, url, few) })
    } else {
        let full = sockets { ($0.keepAlive, $0.tls.resumesSessions) = (.zero, false) }
        all.append(
            Contender(name: "https, new connections, resumed", count: few) { try await sequential(new, url, few) }
        )
        all.append(
            Contender(name: "https, new connections, full handshake", count: few) {
                try await sequential(full, url, few)
            }
        )
    }
    return all
}

var samples: [String: [Sample]] = [:]
let all = try urls.flatMap(contenders)
for round in 0...rounds {
    for contender in all {
        let sample = try await measure(contender.count, contender.run)
        // The first round is a warm-up.
        if round > 0 { samples[contender.name, default: []].append(sample) }
    }
}
print("| \(requests) requests, \(rounds) rounds | requests/s | processor time per request, µs |\n| --- | --- | --- |")
for contender in all {
    let own = samples[contender.name] ?? []
    print("| \(contender.name) | \(middle(own.map(\.rate))) | \(middle(own.map(\.processor))) |")
}

/// The quotient of two rates in percent, round by round.
@MainActor func compare(_ name: String, _ other: String) {
    guard let own = samples[name], let others = samples[other] else { return }
    print("\(name) of \(other), round by round, %: \(middle(zip(own, others).map { $0.rate / $1.rate * 100 }))")
}
compare("http, SocketTransport", "http, URLSession")
compare("http, SocketTransport", "https, SocketTransport")
