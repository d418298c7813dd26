import LarderBackend
import LarderCoding
import LarderHTTP

/// A network over time: a set of timed faults that simulates what a phone meets on the way.
///
/// Values are round numbers within the range of public measurements. Use a script for other values.
public enum Journey: String, Sendable, Hashable, CaseIterable {
    /// Every request fails.
    case offline
    /// A slow mobile network: 750 kB/s down, about 150 ms of latency.
    case threeG = "3g"
    /// A very slow mobile network: 30 kB/s down, about 500 ms of latency.
    case edge
    /// Bursts of lost packets.
    case lossyWifi = "lossy-wifi"
    /// A fast network for 30 s; then all open connections are dead, and a slower network follows.
    case wifiToCell = "wifi-to-cell"
    /// No network for 20 s every two minutes, and slow before and after it.
    case tunnel
    /// No network for 12 s every minute.
    case lift
    /// Alternates between good, slow, lossy and offline, with a period of five minutes.
    case train
    /// A captive portal: every request is answered with an HTML page, over https with a certificate for another host.
    case captivePortal = "captive-portal"
    /// Half of the requests fail with 503 or 429, the others are slow.
    case overloaded
    /// Alternates between five seconds online and five seconds offline.
    case flapping

    /// A description in one sentence.
    public var summary: String {
        switch self {
        case .offline: "no network: connections are reset"
        case .threeG: "750 kB/s down, 250 kB/s up, about 150 ms of latency"
        case .edge: "30 kB/s down, 15 kB/s up, about 500 ms of latency, some loss"
        case .lossyWifi: "bursts of packet loss: stalls of 0.3 s and more"
        case .wifiToCell: "good for 30 s, then open connections are dead and 3g takes over"
        case .tunnel: "every 120 s: slow, offline for 20 s, slow, good"
        case .lift: "every 60 s: offline for 12 s"
        case .train: "every 300 s: good, slow, lossy, offline for 30 s, edge"
        case .captivePortal:
            "every request is answered with 200 and an HTML page; https shows a certificate for another host"
        case .overloaded: "half of all requests get 503 or 429 with Retry-After, the rest are slow"
        case .flapping: "5 s online, 5 s offline"
        }
    }

    /// The faults of the journey, starting when they are set.
    ///
    /// - Parameter match: which exchanges; all by default.
    public func faults(for match: FaultMatch = FaultMatch()) -> [Fault] {
        var faults: [Fault] = []
        func add(_ action: FaultAction, _ window: (Int, Int)? = nil, every period: Int? = nil, probability: Double = 1)
        {
            var occurrence = Fault.Occurrence()
            occurrence.probability = probability
            if let window {
                occurrence.from = .seconds(window.0)
                occurrence.until = window.1 == .max ? nil : .seconds(window.1)
            }
            occurrence.period = period.map { .seconds($0) }
            let id = "\(rawValue)-\(faults.count + 1)"
            faults.append(Fault(id: id, action, when: match, occurrence: occurrence))
        }
        func slow(_ median: Int, down: Int, up: Int, _ window: (Int, Int)? = nil, every period: Int? = nil) {
            let delay = Distribution.logNormal(median: .milliseconds(median), sigma: 0.4, maximum: .seconds(10))
            add(.latency(connect: delay, firstByte: delay, body: nil), window, every: period)
            add(.bandwidth(down: down, up: up), window, every: period)
        }
        var lossy = BurstLoss()
        lossy.lossInBad = 0.5
        switch self {
        case .offline: add(.reset)
        case .threeG: slow(150, down: 750_000, up: 250_000)
        case .edge:
            slow(500, down: 30_000, up: 15_000)
            add(.loss(BurstLoss(goodToBad: 0.01)))
        case .lossyWifi:
            add(.latency(connect: nil, firstByte: .uniform(.milliseconds(5), .milliseconds(60)), body: nil))
            add(.loss(lossy))
        case .wifiToCell:
            add(.staleConnections, (30, .max))
            add(.live(Self.ending(after: 30)), (0, 30))
            slow(150, down: 750_000, up: 250_000, (30, .max))
        case .tunnel:
            slow(400, down: 50_000, up: 20_000, (20, 40), every: 120)
            add(.never, (40, 60), every: 120)
            slow(400, down: 50_000, up: 20_000, (60, 75), every: 120)
        case .lift: add(.never, (20, 32), every: 60)
        case .train:
            slow(150, down: 750_000, up: 250_000, (60, 120), every: 300)
            add(.loss(lossy), (120, 180), every: 300)
            add(.reset, (180, 210), every: 300)
            slow(500, down: 30_000, up: 15_000, (210, 300), every: 300)
        case .captivePortal:
            var page = CannedReply(status: 200)
            page.contentType = "text/html; charset=utf-8"
            page.body = """
                <!doctype html><html><head><title>Free Wi-Fi</title></head><body><h1>Welcome to Free Wi-Fi</h1>\
                <form method="post" action="/login"><button>Accept the terms</button></form></body></html>
                """
            add(.respond(page))
            // Without a request the match would apply to nothing.
            if !match.requiresRequest { add(.certificate(.wrongHost)) }
        case .overloaded:
            var unavailable = CannedReply(status: 503)
            unavailable.retryAfter = .seconds(2)
            var limited = CannedReply(status: 429)
            limited.retryAfter = .date(inSeconds: 5)
            add(.respond(unavailable), probability: 0.33)
            add(.respond(limited), probability: 0.25)
            let delay = Distribution.logNormal(median: .milliseconds(800), sigma: 0.6, maximum: .seconds(20))
            add(.latency(connect: nil, firstByte: delay, body: nil))
        case .flapping: add(.reset, (5, 10), every: 10)
        }
        return faults
    }

    private static func ending(after seconds: Int) -> LiveFault {
        var fault = LiveFault()
        fault.endAfter = .seconds(seconds)
        return fault
    }
}
