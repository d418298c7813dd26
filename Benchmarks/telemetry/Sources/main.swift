// What a client counts in a process of its own:
//
//     swift run telemetry-benchmark http://127.0.0.1:8080 /tmp/somewhere          signs ana in where nobody is, and shows the feed
//     swift run telemetry-benchmark http://127.0.0.1:8080 /tmp/somewhere offline  the same without a network
//
// A third or fourth argument `prometheus` gives the text for a scrape instead of JSON.

import Foundation
import Larder

var arguments = Array(CommandLine.arguments.dropFirst())
let isOffline = arguments.contains("offline")
let isPrometheus = arguments.contains("prometheus")
arguments.removeAll { ["offline", "prometheus"].contains($0) }
guard arguments.count == 2 else {
    print("Give the server and a directory: http://127.0.0.1:8080 /tmp/somewhere")
    exit(2)
}

let clock = ContinuousClock()
let start = clock.now
var configuration = LarderClient.Configuration()
configuration.followsLive = false
if isOffline {
    let source = ManualNetworkSource()
    source.set(isConnected: false)
    configuration.upkeep.networkSource = source
}
let client = try await LarderClient(server: arguments[0], account: "ana", directory: arguments[1], configuration)
if client.session.state == .signedOut, !isOffline { try await client.signIn(handle: "ana", password: "larder") }
let opened = clock.now - start

/// Shows what there is, as a screen does that is opened.
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
print(isPrometheus ? totals.prometheus : totals.json)
client.close()
