// Prints the telemetry of a client in its own process:
//
//     swift run telemetry-benchmark http://127.0.0.1:8080 /tmp/somewhere          signs in as ana if necessary, and reads the feed
//     swift run telemetry-benchmark http://127.0.0.1:8080 /tmp/somewhere offline  the same without a network

import Foundation
import Larder
import LarderDemo

var arguments = Array(CommandLine.arguments.dropFirst())
let isOffline = arguments.contains("offline")
arguments.removeAll { $0 == "offline" }
guard arguments.count == 2 else {
    print("usage: telemetry-benchmark http://127.0.0.1:8080 DIRECTORY [offline]")
    exit(2)
}

let clock = ContinuousClock()
let start = clock.now
var configuration = LarderClient.Configuration()
configuration.followsLive = false
if isOffline {
    let monitor = NetworkMonitor()
    monitor.setOverride(.offline)
    configuration.services.network = .given(monitor)
}
let client = try await LarderClient(server: arguments[0], account: "ana", directory: arguments[1], configuration)
if client.session.state == .signedOut, !isOffline { try await client.signIn(handle: "ana", password: "larder") }
let opened = clock.now - start

/// Runs a read and prints its result and time.
func show(_ name: String, _ read: () async throws -> String) async {
    let began = clock.now
    do { print("\(name): \(try await read()), after \(clock.now - began)") } catch {
        print("\(name): \(error), after \(clock.now - began)")
    }
}

print("opened after \(opened)")
await show("feed") {
    let feed = try await client.cache.snapshot(client.feed.newest, .staleWhileRevalidate)
    return "\(feed.value?.items.count ?? 0) posts from \(feed.source?.rawValue ?? "nowhere"), \(feed.freshness)"
}
await show("profile") {
    let profile = try await client.profiles.profile("user_2", .staleWhileRevalidate)
    return "\(profile.value?.handle ?? "nobody") from \(profile.source?.rawValue ?? "nowhere"), \(profile.freshness)"
}
await show("pull") { "\(try await client.cache.refresh(client.feed.newest).freshness)" }
let totals = client.telemetry.totals
print(totals.json)
client.close()
