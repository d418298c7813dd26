import Foundation
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderDevice

@Suite("Network interfaces", .oneMinute)
struct NetlinkTests {
    @Test(
        arguments: [
            ([192, 0, 2, 1], true), ([10, 0, 0, 5], true), ([127, 0, 0, 1], false), ([169, 254, 3, 4], false),
            ([0, 0, 0, 0], false),
            ([0x20, 0x01, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [1], true),
            ([0xFE, 0x80] + Array(repeating: 0, count: 13) + [1], false), (Array(repeating: 0, count: 15) + [1], false),
            ([], false),
        ] as [([UInt8], Bool)]
    )
    func `only a routable address makes an interface usable`(_ address: [UInt8], _ isUsable: Bool) {
        #expect(NetworkStatus.Interface(name: "eth0", isUp: true, addresses: [address]).isUsable == isUsable)
        #expect(!NetworkStatus.Interface(name: "eth0", isUp: false, addresses: [address]).isUsable)
        #expect(!NetworkStatus.Interface(name: "lo", isUp: true, isLoopback: true, addresses: [address]).isUsable)
    }

    @Test func `this machine's loopback is found by the real socket`() throws {
        let source = try NetlinkSource()
        let loopback = source.status.interfaces.first { $0.isLoopback }
        #expect(loopback?.name == "lo" && loopback?.isUsable == false)
        #expect(loopback?.isUp == true && loopback?.addresses.contains([127, 0, 0, 1]) == true)
        let registration = source.observe { _ in }
        withExtendedLifetime(registration) {}
    }

    /// The number of netlink sockets of this process.
    private func openSockets() throws -> Int {
        let table = try String(contentsOfFile: "/proc/self/net/netlink", encoding: .utf8)
        let inodes = Set(table.split(separator: "\n").compactMap { $0.split(separator: " ").last })
        return try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { name in
            // The descriptor of the listing itself is gone by now.
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + name)
            guard let target, target.hasPrefix("socket:[") else { return false }
            return inodes.contains(target.dropFirst(8).dropLast())
        }
    }

    @Test func `sources leave no descriptors behind`() async throws {
        for _ in 0..<50 { _ = try NetlinkSource() }
        // A source's thread closes its socket. Other tests have one or two at a time.
        try await reached { try openSockets() < 50 }
        #expect(try openSockets() < 50)
        let (source, explanation) = NetworkMonitor.systemSource()
        #expect(!explanation.isEmpty && !source.status.interfaces.isEmpty)
    }
}
