import Foundation
import Larder

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Measures sequential requests over one keep-alive connection, interleaved: `SocketTransport`, Foundation's `URLSession`, and a blocking C
/// loop that knows the size of each reply, which is the lower bound.
let usage = "transport-benchmark http[s]://127.0.0.1:PORT/PATH [ROUNDS] [REQUESTS A ROUND]"
let arguments = CommandLine.arguments
guard arguments.count > 1 else {
    print(usage)
    exit(2)
}
let url = arguments[1]
let rounds = arguments.count > 2 ? Int(arguments[2]) ?? 9 : 9
let requests = arguments.count > 3 ? Int(arguments[3]) ?? 2_000 : 2_000

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

func measure(_ body: () async throws -> Void) async rethrows -> Sample {
    let (wall, processor) = (seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID))
    try await body()
    let took = seconds(CLOCK_MONOTONIC) - wall
    let used = seconds(CLOCK_PROCESS_CPUTIME_ID) - processor
    return Sample(rate: Double(requests) / took, processor: used * 1e6 / Double(requests))
}

/// Foundation's client.
struct FoundationTransport: Transport {
    let session = URLSession(configuration: .ephemeral)

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        guard let url = URL(string: request.url) else { throw TransportError(.invalidURL, request.url) }
        do {
            let (data, response) = try await session.data(for: URLRequest(url: url))
            let status = (response as? HTTPURLResponse)?.statusCode ?? 0
            return TransportResponse(status: Status(code: status), body: Array(data))
        } catch { throw TransportError(.interrupted, "\(error)") }
    }
}

func middle(_ values: [Double]) -> String {
    let sorted = values.sorted()
    func text(_ value: Double) -> String { "\(Int(value.rounded()))" }
    return "\(text(sorted[sorted.count / 2])) (\(text(sorted[0])) – \(text(sorted[sorted.count - 1])))"
}

func sequential(_ transport: any Transport) async throws {
    let request = TransportRequest(url: url)
    for _ in 0..<requests {
        let reply = try await transport.send(request)
        guard reply.status.code == 200 else { throw TransportError(.interrupted, "status \(reply.status.code)") }
    }
}

func concurrent(_ transport: any Transport) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<6 {
            group.addTask {
                for _ in 0..<(requests / 6) { _ = try await transport.send(TransportRequest(url: url)) }
            }
        }
        try await group.waitForAll()
    }
}

// For https with a certificate of the development authority: LARDER_BENCHMARK_ROOTS is its file.
var configuration = SocketTransport.Configuration()
if let roots = ProcessInfo.processInfo.environment["LARDER_BENCHMARK_ROOTS"] {
    configuration.tls.roots = .only(file: roots)
}
let sockets = SocketTransport(configuration)
let foundation = FoundationTransport()
let bare = try BareClient(url)
var samples: [String: [Sample]] = [:]
let names = [
    "bare C loop", "SocketTransport", "URLSession", "SocketTransport, 6 tasks", "URLSession, 6 tasks",
]
for round in 0...rounds {
    for name in names {
        let sample: Sample
        switch name {
        case "bare C loop": sample = try await measure { try bare.run(requests) }
        case "SocketTransport": sample = try await measure { try await sequential(sockets) }
        case "URLSession": sample = try await measure { try await sequential(foundation) }
        case "SocketTransport, 6 tasks": sample = try await measure { try await concurrent(sockets) }
        default: sample = try await measure { try await concurrent(foundation) }
        }
        // The first round is a warm-up.
        if round > 0 { samples[name, default: []].append(sample) }
    }
}
print("| \(requests) requests, \(rounds) rounds | requests/s | processor time per request, µs |\n| --- | --- | --- |")
for name in names {
    let all = samples[name] ?? []
    print("| \(name) | \(middle(all.map(\.rate))) | \(middle(all.map(\.processor))) |")
}
let ratios = zip(samples["SocketTransport"] ?? [], samples["URLSession"] ?? []).map { $0.rate / $1.rate * 100 }
print("sockets of URLSession, round by round, %: \(middle(ratios))")
